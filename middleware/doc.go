// Package middleware gives every HTTP request a verified database connection
// on the shard of its session, and moves the session on when that shard is
// gone. It has the shape func(http.Handler) http.Handler, works with chi and
// with http.ServeMux, and stands inside the session middleware:
//
//	r.Use(sessions.LoadAndSave)
//	r.Use(middleware.New(middleware.Config{Sessions: sessions, Router: router}))
//
// # What happens to a request
//
//	         route of the session, or first assignment in Config.Group
//	                                 │
//	                                 ▼
//	503 ◄── none to be had ── Lease: connect and verify ◄─────────┐
//	                                 │                            │
//	        the session's own shard ─┤ another shard              │
//	                   │             ▼                            │
//	                   │           Claim ── lost: release, follow the winner
//	                   │             │  └── error: a detour, served but not stored
//	                   ▼             ▼
//	                       the handler runs
//	                                 │
//	                                 ▼
//	     its context ends, then the connection goes back
//
// The order is fixed: a route is stored only for a shard that was reached, and
// the handler runs only after the route is stored or is known not to be. The
// claim runs on a context of its own, so that a client that leaves does not
// undo the work of finding a shard. After three lost claims in a row the
// request is a detour.
//
// # The seat
//
// A request has one seat, and the seat has at most one lease at a time:
//
//	empty ── Acquire, Tx ──► holding ── Release, stream, hijack ──► given back
//	 (lazy mode)              │   ▲                                    │
//	       lost in Tx, or     │   │                                    │
//	       Assign, Move failed▼   └── Acquire, Tx, Assign, Move ◄──────┤
//	                       without ────────────────────────────────────┘
//
// From everywhere the handler's return leads to ended, also by a panic, which
// goes on untouched. Given back, Conn panics with the remedy, since the
// handler's own code led there. Without and ended, Conn returns the closed
// connection, whose use is an error that the handler has to expect anyway. With
// the context of no request at all, every function but WriteError panics.
//
// The handler's context lives as long as the request, not as long as a lease.
// A connection is not held for the length of an event stream (Content-Type
// text/event-stream, from the first Write or Flush) or of a hijacked socket:
// ten idle streams must not empty the pool. Such handlers call Acquire and
// Release around each use.
//
// # Replay
//
// A connection that is lost in the middle of a handler costs the request, with
// one exception: the handler runs again, on a new connection and so on another
// shard if need be, when nobody could tell that it ran before. All of this has
// to hold, and no single sign is taken for another:
//
//   - the method is GET, HEAD or OPTIONS, and there is no body;
//   - the answer's status is 500 or above, and nothing has left for the client:
//     no byte, no flush, no 1xx, no push, no hijack, no event stream;
//   - the connection of the request's last lease went, which a statement met
//     (shardrouter.Lease.Lost). A status alone is no evidence, and a statement
//     that its own context ended is none either;
//   - whatever ran on connections taken under the request's context provably
//     was a read (shardrouter.OnlyRead), transactions and connections taken
//     from the router included;
//   - the session is as it was loaded (Changed of the session store; without
//     that method nothing is ever run again), and neither Assign nor Move was
//     called;
//   - the client is still there, and the handler ran less than Config.MaxRuns
//     times, which is 2 unless set. 1 turns replay off.
//
// Only an answer that could be followed by another run is held back, up to
// Config.ReplayBuffer bytes: a failure after a loss. Every other goes out as it
// is written, so that replay costs a steady request a copy of its header fields
// and little else. The first run ends, with its context, its rows and its
// lease, before the next lease is looked for; if none can be had, the answer
// that was held back goes out. A refusal by WriteError that is followed by
// another run is not reported as one.
//
// Every run has a request of its own: URL, header and parsed form are as they
// were, chi's route context too, and of the header of the answer nothing that a
// run has set is left. Rotated compares with the shard that the session named
// when the request came in. Other things that a handler can reach through the
// context, and path values that it sets itself, are not restored.
//
// So what is mounted within this middleware runs twice, and has to bear that:
// a counter there counts twice, a logger there logs both answers. Mount such
// outside. A handler that has other effects behind a safe method than its
// statements, such as a mail or a call of another service, or that writes
// through a connection taken under a foreign context, needs MaxRuns: 1. A panic
// goes on and is never followed by another run; a Recoverer mounted within
// makes an answer of it that can be. A mount within another mount switches
// replay off for both.
//
// # What is authoritative
//
// The session store says where a session belongs; the router says what can be
// reached. Nothing that the client sends has any influence on the route: no
// header, cookie, parameter or body is read here. Accept alone is read, to
// choose the form of a refusal.
//
// A session that names a shard which is not configured any more, or is in
// another group by now, gets another shard of its own group, never silently:
// a line in the log, and Observer.Reassigned.
//
// # What happens on failure
//
//   - The shard is gone: the router finds another of the group, within its
//     budget, before the handler runs. Rotated tells the handler.
//   - The route cannot be stored: the request is a detour. A store with
//     ClaimLater keeps the route and stores it when it can; with another, the
//     next request tries again. Assign and Move are deliberate, so there it is
//     an error, and nothing is stored later.
//   - No shard can be had, or the shard is full: 503 with Retry-After, as a
//     problem document or as a page for browsers. The log gets every attempt,
//     the client none of them.
//   - The connection is lost under the handler: the request runs again if that
//     cannot show, see Replay. Otherwise the handler's error stands, and the
//     next request is elsewhere.
//   - The handler left rows or a transaction open: the end of its context
//     closes them. What stays open all the same the router reports and cuts.
//   - [http.TimeoutHandler] belongs outside. Mounted within, it gives the handler
//     up: the connection goes back at once, what was under way on it counts as
//     left open, and what the handler asks for afterwards is [ErrRequestEnded].
//   - The client left: nothing is reported.
package middleware
