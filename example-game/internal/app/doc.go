// Package app is the whole program as a value that tests can run: [Run] reads
// the environment, starts what it describes, and stops it when its context
// ends.
//
//	ADDR                  where the game listens, 127.0.0.1:8080
//	ADMIN_ADDR            where operators look, 127.0.0.1:8081
//	ADMIN_TOKEN           what operators have to know; required where ADMIN_ADDR
//	                      is not a loopback address
//	SHARDS, SHARD_*       the shards, as package shardrouter reads them
//	SHARDS_FILE           a file of these, read over the others and again on SIGHUP
//	REDIS_URL, REDIS_*,   Redis and the sessions, as package shardhop reads them
//	SESSION_*, COOKIE_SECURE
//
// Without SHARDS there is a MySQL cluster in memory, one for every group of
// server_1 to server_3, and without REDIS_URL a Redis; each is replaced by the
// real thing on its own.
//
// # Start and stop
//
// Everything starts in the order of the arrows and stops in the other
// direction; a start that fails stops what it had started:
//
//	variables ─► ports ─► embedded parts ─► library ─► game, admin
//
// A shard that is down does not stop the start. When the context ends, the
// ports close, event streams end, and what runs gets up to thirty seconds.
package app
