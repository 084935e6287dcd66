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
// connection, whose use is an error that the handler has to expect anyway.
//
// The handler's context lives as long as the request, not as long as a lease.
// A connection is not held for the length of an event stream (Content-Type
// text/event-stream, from the first Write or Flush) or of a hijacked socket:
// ten idle streams must not empty the pool. Such handlers call Acquire and
// Release around each use.
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
//   - The handler left rows or a transaction open: the end of its context
//     closes them. What stays open all the same the router reports and cuts.
//   - The client left: nothing is reported.
package middleware
