// Package fleet holds the tests of a fleet: three instances of the game that
// share real MariaDB servers and a real Redis, each on paths of its own that can
// be broken without the others. It has no code besides.
//
//	player ──► instance 1 ──┬─ proxy ──► server_1 ─┐
//	player ──► instance 2 ──┼─ proxy ──► server_2 ─┼─► one MariaDB: the shards
//	player ──► instance 3 ──┴─ proxy ──► server_3 ─┘   hold the same rows
//	                │
//	                └──► Redis, one for each test
//
// Every instance has a proxy of its own for every shard. A shard that is dead is
// one whose proxies are all broken; an instance with a broken path has one.
// Where a test needs a server in a state that no proxy can play, it starts one.
//
// The benchmarks print the figures of docs/health.md: make bench-fleet.
package fleet
