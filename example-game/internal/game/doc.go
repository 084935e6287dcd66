// Package game is the HTTP side of the example: players register, dig for gold
// and give it away, each on the shard that the library chose.
//
// # Who is playing, and where
//
// The session holds one value of the game's own, the player: realm and name in
// one string, so that no concurrent request sees half of a sign-in. A realm is
// a group of shards. The route in the session says which shard serves; the
// library moves it. Two rules keep a player from somebody else's rows:
//
//   - The group of the serving shard has to be the player's realm, whatever
//     the session says. Otherwise the player is looked for.
//   - A row that is missing on the serving shard is looked for on the other
//     shards of the realm, which may not hold the same rows. Where it is found
//     the session moves; otherwise the answer is 503 with the code
//     player_elsewhere, and nothing is created in its place.
//
// A search asks all shards of a realm at once but those that are known to be
// down, and waits for every answer, so that how long a login takes does not tell
// which names exist. A sign-in begins a session of its own.
//
// Names are unique in a realm, also while one of its shards is down: besides
// the rows, Redis remembers which names are taken (see roster).
//
// # A request
//
//	security ─► session ─► seat (lazy) ─► handler ─► Tx, to read as to write
//
// The seat is lazy, so that a request without a login is turned away, a form
// is checked and a password is hashed without holding a connection. A shard
// that is dead when the handler asks for it is left behind inside that call, and
// one that dies under a transaction is left behind by running it again.
//
// # Once
//
// Whoever digs or gives may name the request with an Idempotency-Key: however
// often it is sent, it has its effect once, and the repeat gets the first answer
// with Idempotency-Replayed: true. The key is the player's, not the session's,
// and stands for method, path and body; another request under it is refused
// (422), one that comes while the first still runs waits, five seconds at most,
// and is then refused (409). The answer is stored beside the gold, in the same
// transaction, so that it is where the player's rows are. A deed that is refused
// (no such player, not enough gold) is not stored: nothing has happened, and the
// same key may be tried again. A key is remembered for SHARD_OUTCOME_RETENTION,
// a day; on the embedded MySQL, which every row makes slower, for ten minutes.
//
// # Failure
//
// Every error ends in one table (problems.go) or in the library's own
// (middleware.WriteError). A handler returns its error; nothing internal is in
// the answer.
package game
