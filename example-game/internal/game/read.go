package game

import (
	"context"
	"database/sql"
	"errors"

	"github.com/shardhop/shardhop/example-game/internal/store"
	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/shardrouter"
)

// reader does nothing but read, so that it may run more than once.
type reader func(ctx context.Context, db store.DB) error

// read runs use on the request's connection, and again on another one when
// that goes under it.
func read(ctx context.Context, use reader) error {
	return readOnly(use, func(opts shardrouter.TxOptions, fn shardrouter.TxFunc) error {
		return middleware.TxWith(ctx, opts, fn)
	})
}

// readAt is read on one particular shard, outside the request's own lease.
func (g *Game) readAt(ctx context.Context, shard string, use reader) error {
	v := visit{router: g.hop.Router, shard: shard}
	defer v.end()
	return readOnly(use, func(opts shardrouter.TxOptions, fn shardrouter.TxFunc) error {
		return shardrouter.Tx(ctx, &v, opts, fn)
	})
}

// readOnly has transact run use in a transaction that is there for being run
// again. A COMMIT without an answer is no failure: use has read everything by
// then, and there was nothing to commit.
func readOnly(use reader, transact func(shardrouter.TxOptions, shardrouter.TxFunc) error) error {
	err := transact(shardrouter.TxOptions{ReadOnly: true}, func(ctx context.Context, tx *sql.Tx) error {
		return use(ctx, tx)
	})
	if errors.Is(err, shardrouter.ErrOutcomeUnknown) {
		return nil
	}
	return err
}

// visit lends the connections of one shard to one goroutine.
type visit struct {
	router *shardrouter.Router
	shard  string
	lease  *shardrouter.Lease // nil while there is none
}

// Lease returns the lease that the visit has, or takes one.
func (v *visit) Lease(ctx context.Context) (*shardrouter.Lease, error) {
	if v.lease == nil {
		lease, err := v.router.Acquire(ctx, v.shard)
		if err != nil {
			return nil, err
		}
		v.lease = lease
	}
	return v.lease, nil
}

// Lost gives back a lease that is of no more use.
func (v *visit) Lost(l *shardrouter.Lease) {
	l.Release()
	v.lease = nil
}

func (v *visit) end() {
	if v.lease != nil {
		v.lease.Release()
	}
}
