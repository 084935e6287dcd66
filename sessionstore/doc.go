// Package sessionstore keeps scs sessions in Redis, one hash per session, and
// the route of each session beside its values.
//
// A [Manager] is an scs.SessionManager to its users. It brings its own Load,
// LoadAndSave, Put, RenewToken, Destroy and Iterate, since scs tells a store neither
// what was loaded nor whether a session is new, and a store without that
// knowledge saves whole sessions, last writer wins.
//
// # Keys
//
// A session is the hash session:<id>, where id is the base64url SHA-256 of the
// token: who can read Redis cannot log in as anybody. All of a session lies in
// one cluster slot.
//
//	db_server, home, group, epoch   the route; absent until the first claim
//	settled                         present: the session does not go back home
//	nonce                           the last writer of the route, or the creator
//	expires                         absolute expiry, Unix milliseconds
//	version                         number of saves, 1 at creation
//	saves                           names of the last six saves, five bytes each
//	d:<key>                         a value: its type, then itself, in bytes
//	renewing                        who replaces the token, and until when at most
//
// Every key has a TTL from its creation on: the time to the absolute expiry,
// or the idle timeout and a twentieth more where that ends sooner. The absolute
// expiry is checked at load as well.
//
// # Values
//
// Each value comes back with the exact type that it had: nil, booleans,
// integers and floats of every size, strings, []byte, time.Time,
// time.Duration, and slices and maps of these and of any, such as []string,
// map[string]any and map[int][]string. A nil slice or map stays nil and an
// empty one empty. Keys of maps are strings, integers, booleans or durations.
//
// A time keeps its instant and the name and offset of its zone, not the zone's
// rules: 12:00 in Europe/Berlin comes back as 12:00 CEST. It is a local time
// again where CEST is the local zone then.
//
// All other types, structs and named types among them, go through encoding/gob
// and must be registered with gob.Register, as under scs; gob gives a pointer
// back as the type that was registered. They take more room and time, also to
// find out that they did not change. A value of another type, one that nests
// deeper than 32 slices and maps, or one of more than 1 MiB fails the save with
// [ErrValue], and so does a session of more than 4 MiB, since every request reads
// all of it. The answer is a 500: the program is at fault, and not Redis.
//
// # A request
//
//	load ──► handler ──► save ──► headers and body ──► late save
//	HGETALL     │      one script,                   one script, if values
//	            │      if values changed             changed after the save
//	            └─ claim: one script, if the route changes
//
// Load reads the hash in one round trip, and none without a cookie. What was
// loaded stays in the request's context as encoded fields. Save compares with
// it and sends the difference: fields to set and fields to delete. Nothing
// changed, nothing sent. Two requests of one session thus keep each other's
// keys, and of one key the later save stands. Keys that were declared with
// [Manager.Atomic] are written as one, so of two saves that change such keys
// the later one stands whole. With an idle timeout, the load asks for the TTL in
// the same round trip, and a request that changed nothing moves the TTL alone,
// once per twentieth of the timeout; if that fails, the answer stands. Slices and
// maps that a handler changed in place are saved if it stored anything, and, as
// under scs, with an idle timeout always.
//
// A session comes into being when a handler has stored something. An unknown
// token gets no session, no key and no cookie. A cookie goes out only when a
// write of the request saw the token alive, so that a slow answer does not
// bring back a token that was renewed or logged out meanwhile; storing a value
// that is there already is no write, and sends no cookie.
//
// # The route
//
// Redis is authoritative. [Manager.Claim] changes the route by compare-and-set
// on epoch, shard and nonce together: after a failover that lost a write, one
// epoch can have been given twice. Who loses a claim gets the winner's route.
// Saves never write the route, except that a new session is created with the
// route claimed for it. A renewed token carries the route along.
//
//	          claim                 claim: epoch + 1
//	no route ───────► epoch 1 ─────────────────────► epoch n
//	                     │ renew: same route, new key   │
//	                     └──────────────┬───────────────┘
//	                          destroy, expiry: gone
//
// The value db_server of the session shows the shard of the route to handlers.
// Storing another value under that name changes what the request itself reads
// and is never saved.
//
// # Scripts
//
// Only create brings a key into being; the others (save, touch, claim, take,
// release) find the session alive or say that it is gone ([ErrSessionGone]).
// go-redis repeats a script whose answer got lost, so each of them may run
// twice, and another request may come in between. A claim or a create that finds
// its own nonce, or a save that finds its name among the last six, has succeeded
// and does nothing. Writes run on a context that the client's disconnect does
// not end. A flushed script cache heals with the next call.
//
// # Renewal
//
//	alive ── take ──► taken ── create the new, delete the old ──► gone
//	  ▲                 │
//	  └─── release, or the mark ends after five seconds
//
// A token is renewed at the save. The take marks the old session, which ends it
// for everybody else, and answers what others stored in it by then; the new one
// is created with that, and the old one deleted. If the old one is gone already,
// a logout won, and the new one gets only what this request stored itself.
//
// The two lie in different slots of a cluster, so no script can do both. If
// Redis fails in between, the player keeps the old token: the take has changed
// nothing but the mark, and a load that meets the mark is refused with
// [ErrRenewing] rather than answered with an empty session. If the new one is
// stored and the old one cannot be deleted, the player goes on with the new
// token, and the old one, with what it held before the renewal, is back when
// the mark ends. If the answer to the create is lost for good, the new session
// stays in Redis until it expires, under a token that nobody was told.
//
// # Operators
//
// [Manager.All], [Manager.CountByShard], [Manager.List] and [Manager.EndAll]
// look through all sessions with SCAN, master by master, 200 keys at a time and
// without the players' values. There is no index beside the sessions that a
// failure could leave out of date, and that every login would pay for; ending
// all sessions of one user costs a look at every session instead.
//
// # Failure
//
// Redis fails at load, with a cookie: 503 with Retry-After, no Set-Cookie; the
// cookie works again when Redis does. Without a cookie nothing is asked and
// nothing fails. Redis fails at save: the same 503 in the place of the
// handler's answer. An ErrorFunc of the application's own replaces the 503.
// Redis fails at a claim: the caller gets the error and may serve the request
// on a shard that is not stored.
//
// With [Manager.ClaimLater] such a route is kept in memory and stored when Redis
// can: every half second one goroutine, which lives only while something is
// kept, tries the same compare-and-set. A route that somebody else stored
// meanwhile stands. Until it is stored, this process serves the session by what
// it keeps, and other processes by what Redis says. Nothing of it survives the
// process: the next rotation then decides anew. [Manager.Close] ends it.
//
// A server that has left three calls in a row without an answer is not asked
// any more: a silent one would hold every request for Config.Timeout. One call
// in half a second tries it, and the first answer ends it, so that players are
// back a second or so after Redis is. Of a cluster, each master is judged on
// its own. Errors that a server sends, such as LOADING or READONLY, are
// answers.
//
// Config.Optional names requests that are served without their session while
// Redis is away. They see an empty session, and what would store anything in it
// gets the 503.
//
// A value that cannot be decoded, of a type that this program does not know,
// reads as absent through scs's getters and stays in Redis as it is.
//
// # Differences from scs
//
// The tests of scs 2.9 pass over a Manager, but for two. TestEnable stores a value
// that is there already and wants a cookie, which takes a write here. And the
// case "with error decoding found token" of TestSessionManager_Load gives the
// store bytes that are no session: this store refuses them at once, where scs
// fails when it reads them.
//
// An idle session ends when nobody used it for the idle timeout, or up to a
// twentieth later, as not every request moves the end; with a timeout below a
// second, up to a twentieth earlier.
//
// # Limits
//
//   - A slow answer whose save ran just before another request renewed the
//     token can reach the browser after the renewal's and overwrite the new
//     cookie with the dead one.
//   - gorilla/websocket writes the headers of an upgrade itself, so the cookie
//     of a session created in that request is lost; coder/websocket sends it.
//   - chi's Recoverer mounted inside LoadAndSave turns a panic into an answer,
//     with which the half-done session is saved. Mount it outside.
//   - A value first stored after the answer began is saved only if the client
//     has the session's token already. A token renewed so late is not renewed.
//   - A save repeated by go-redis after six other saves of the session
//     overwrites them.
//   - Expiry compares the hosts' clocks; they should agree to a second.
//   - scs starts a goroutine for its own memory store when a manager is made
//     and offers no safe way to stop it.
package sessionstore
