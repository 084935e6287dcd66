package shardrouter

import (
	"context"
	"database/sql"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/route"
)

// Route says which shard serves a session: its Group, Shard, Home and Epoch.
type Route = route.Route

// Router lends pooled connections of many shards. Its methods are safe for use
// by several goroutines.
type Router struct{}

// New starts a router: one pool and one prober per shard. A shard that is down
// does not make it fail; a malformed Config does.
func New(cfg Config) (*Router, error) { panic("not implemented") }

// Close stops the probers and closes the pools. Leases that are out stay
// usable until they are released. It is idempotent.
func (r *Router) Close() error { return nil }

// Health gives access to what is known of the shards, and to drains.
func (r *Router) Health() *healthcache.Cache { return nil }

// Groups lists the configured groups in the order of their first shard.
func (r *Router) Groups() []string { return nil }

// Shards lists the configured shards in rotation order.
func (r *Router) Shards() []string { return nil }

// GroupOf returns the group of a shard; false for an unknown shard.
func (r *Router) GroupOf(shard string) (string, bool) { return "", false }

// Lease lends a connection for a route: of its own shard, or of the next shard
// of its group that can give one. The connection is verified. A route without
// a shard gets one by the policy of first assignment. key makes the rotation
// of RotationSpread stable for one session; it may be empty.
func (r *Router) Lease(ctx context.Context, rt Route, key string) (*Lease, error) { return nil, nil }

// Acquire lends a connection of exactly this shard.
func (r *Router) Acquire(ctx context.Context, shard string) (*Lease, error) { return nil, nil }

// Each calls fn with a connection of every shard in turn, for jobs and
// migrations, and joins the errors.
func (r *Router) Each(ctx context.Context, fn func(ctx context.Context, shard string, conn *sql.Conn) error) error {
	return nil
}

// Stats returns a snapshot of every pool in rotation order.
func (r *Router) Stats() []Stats { return nil }
