// Package chaos plays the game with a crowd of players while its test breaks
// the database servers under them, and holds the game to what it told them.
//
// Each player sends one request after the other, half of them reads, half digs
// and transfers, every other of these with an Idempotency-Key. The test breaks
// one of three Galera nodes at a random moment, mends it, waits until it is in
// sync, stops the crowd and compares the rows with the [Book], which has every
// acknowledged deed in it:
//
//	        ┌────────── one round ──────────┐
//	play ──► break ──► mend ──► in sync ──► stop ──► audit ──► play …
//
// # What counts
//
// A request has failed when it got no answer, a status of 500 or more, or one
// that the deed cannot have, such as 401 in the middle of a session; and also
// when the transport of the client sent it a second time, as Go's does by itself
// with a request that carries an Idempotency-Key. A deed that failed without a
// key may or may not have happened, and widens what the book allows for the
// players involved. One that failed with a key is repeated with that key until
// there is an answer, which settles it.
//
// The book is authoritative for what was promised, the rows of every node for
// what became of it. Gold that is missing is lost; gold that nobody was
// promised is doubled.
//
// # A shard with a standby
//
// The same crowd plays on one shard whose primary is switched over or killed,
// or whose only node is restarted. Nobody has another shard to go to, so that
// all wait, and nobody fails.
//
// # Shards that come and go
//
// The same crowd plays on shards that a file names, and the file changes: shards
// are added and removed, and change their weights and groups.
//
// To run twenty rounds of each fault and write the table of docs/chaos.md:
//
//	make chaos
package chaos
