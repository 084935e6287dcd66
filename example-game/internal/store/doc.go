// Package store is the SQL of the game: one table of players, the same on
// every shard.
//
// Its functions run on what they are given, a connection or a transaction, and
// know nothing of shards. Those that read and write need a transaction, which
// the caller begins and ends. Where a player is missing they say so with
// [ErrNoPlayer]; whether the rows are then on another shard, the caller has to
// find out.
package store
