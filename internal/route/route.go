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
}

// IsZero reports whether r names no shard.
func (r Route) IsZero() bool { return r.Shard == "" }

// Moved returns the route that follows r when shard takes over: the same
// group and home, and the next epoch. A route without a home gets shard as
// its home.
func (r Route) Moved(shard string) Route {
	next := Route{Group: r.Group, Shard: shard, Home: r.Home, Epoch: r.Epoch + 1}
	if next.Home == "" {
		next.Home = shard
	}
	return next
}
