// Package route holds the one type that the session store, the router and the
// middleware exchange. It stands apart so that none of them has to import
// another for it; each re-exports it under its own name.
package route

// Route says which shard serves a session. The zero value is "no route yet".
type Route struct {
	// Group is the set of shards among which the session may move.
	Group string
	// Shard serves the session now; it is the value of db_server.
	Shard string
	// Home is the shard that was first assigned to the session.
	Home string
	// Epoch grows by one at every change of Shard or Group. The first
	// assignment has epoch 1; 0 means that nothing is stored.
	Epoch uint64
	// Settled says that the session is not brought back to its home: it has
	// been, which happens once, or the server's own code chose its shard.
	Settled bool
}

// IsZero reports whether r names no shard.
func (r Route) IsZero() bool { return r.Shard == "" }

// Moved returns the route that follows r when shard takes over: everything else
// as it is, and the next epoch. A route without a home gets shard as its home.
func (r Route) Moved(shard string) Route {
	next := r
	next.Shard, next.Epoch = shard, r.Epoch+1
	if next.Home == "" {
		next.Home = shard
	}
	return next
}

// Returned returns the route that follows r when the session is brought back
// to its home.
func (r Route) Returned() Route {
	next := r.Moved(r.Home)
	next.Settled = true
	return next
}
