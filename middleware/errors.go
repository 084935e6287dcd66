package middleware

import "errors"

// The occasions that are the middleware's own. Match them with errors.Is; the
// others come from package shardrouter and from the session store.
var (
	// ErrRequestEnded: the handler has returned, and its request takes no
	// connection any more.
	ErrRequestEnded = errors.New("middleware: the request has ended")
	// ErrNotStored: Assign or Move found a connection, but the session store
	// did not confirm the route. The error carries the store's.
	ErrNotStored = errors.New("middleware: the route could not be stored")
	// ErrTooLate: the WriteTimeout of the http.Server left no time to find a
	// connection and answer.
	ErrTooLate = errors.New("middleware: the server's write timeout leaves no time to answer")
	// ErrContended: other requests of the same session changed its route again
	// and again meanwhile.
	ErrContended = errors.New("middleware: the session's route changes too often")
)

// errOursAlone: the router would not have the route follow; see
// shardrouter.Lease.Detour.
var errOursAlone = errors.New("middleware: the shard is out of reach for this instance alone, as far as is known")
