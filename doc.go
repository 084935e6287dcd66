// Package shardhop serves every player of a game from the MySQL server that
// holds the player's rows, and moves on to another server inside the request
// when that one cannot serve.
//
// It wires the library's packages in one call, for those who want no choices:
//
//	hop, err := shardhop.FromEnv(ctx)
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer hop.Close()
//	http.ListenAndServe(addr, hop.Handler(mux))
//
// Handlers then use package middleware: middleware.Conn(ctx) is a verified
// connection of the player's shard, middleware.Tx(ctx, fn) a transaction on it.
//
// # What one request does
//
//	request ─► session ─► route ─► shard ─► lease ─► claim ─► handler ─► release
//	           (Redis)      ▲        │ attempt fails    (only if the route changed)
//	                        └────────┘ rotation: the next shard of the group
//
// The session is read from Redis in one round trip. Its route names the shard.
// A connection of that shard is taken from the pool and verified; when it cannot
// be had, the next healthy shard of the group is tried, within one budget of
// time. Only then is the changed route stored, by compare-and-set, and only then
// does the handler run: the player sees one normal answer.
//
// # What is authoritative
//
// The session in Redis is, for which shard serves a player: it is read at every
// request and changed by compare-and-set only. The configuration is, for which
// shards exist. What is known of their health is a hint: a shard of unknown
// health is tried.
//
// # What happens on failure
//
//   - A shard down, frozen, read-only or drained: its players are served by the
//     next shard of their group. *Rotation keeps a player's rows only between
//     shards that hold the same rows.*
//   - A shard full: 503 with Retry-After after a bounded wait; nobody moves.
//   - Every shard of a group down: the request waits for one, up to a minute of
//     the outage, and then gets 503 with Retry-After.
//   - Redis gone: requests with a cookie get 503 within a second and keep their
//     cookie; requests without one are served.
//   - Any of them down at the start: the program starts all the same.
//
// # Building it yourself
//
// [Open] holds nothing that a program could not do itself. Package sessionstore
// holds the sessions, shardrouter the pools, healthcache what is known of the
// shards, and middleware everything HTTP.
package shardhop
