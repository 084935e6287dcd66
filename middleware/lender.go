package middleware

import (
	"context"
	"database/sql"

	"github.com/shardhop/shardhop/shardrouter"
)

// lender is what lends connections: a shardrouter.Router, by way of [pools].
type lender interface {
	Lease(ctx context.Context, rt Route, key string) (lease, error)
	Acquire(ctx context.Context, shard string) (lease, error)
	// OnlyRead: see shardrouter.OnlyRead.
	OnlyRead(ctx context.Context) bool
}

// layout tells which shards are configured; see shardrouter.Router.
type layout interface {
	Groups() []string
	GroupOf(shard string) (string, bool)
}

// lease is what a seat needs of a shardrouter.Lease.
type lease interface {
	Conn() *sql.Conn
	Shard() string
	Alive() bool
	Lost() bool
	Detour() bool
	Returned() bool
	Release()
	ReleaseAfter(ctx context.Context, cancel context.CancelFunc)
}

// pools makes a lender of a router.
type pools struct{ router *shardrouter.Router }

func (p pools) Lease(ctx context.Context, rt Route, key string) (lease, error) {
	return lent(p.router.Lease(ctx, rt, key))
}

func (p pools) Acquire(ctx context.Context, shard string) (lease, error) {
	return lent(p.router.Acquire(ctx, shard))
}

func (p pools) OnlyRead(ctx context.Context) bool { return shardrouter.OnlyRead(ctx) }

// lent keeps a nil *Lease from becoming a lease that is not nil.
func lent(l *shardrouter.Lease, err error) (lease, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}
