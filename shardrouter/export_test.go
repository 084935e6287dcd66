package shardrouter

import (
	"context"
	"errors"
	"time"
)

// Bulkhead exposes a bulkhead and its era to the tests.
type Bulkhead struct {
	b *bulkhead
	e *era
}

func NewBulkhead(slots, maxWaiting int, wait time.Duration) *Bulkhead {
	return &Bulkhead{b: newBulkhead(slots, maxWaiting, wait), e: newEra()}
}

func (t *Bulkhead) Enter(ctx context.Context, budget time.Duration, nested bool) error {
	return t.b.enter(ctx, t.e, time.Now().Add(budget), nested)
}

func (t *Bulkhead) Leave()       { t.b.leave() }
func (t *Bulkhead) EndEra()      { t.e.end() }
func (t *Bulkhead) InUse() int   { return int(t.b.inUse.Load()) }
func (t *Bulkhead) Waiting() int { return int(t.b.waiting.Load()) }

// Cut ends the era of a shard, as a failed probe does.
func (r *Router) Cut(shard string) { r.pools[shard].cut() }

// OpenServerConns counts the connections that sql.DB has open.
func (r *Router) OpenServerConns(shard string) int {
	return r.pools[shard].db.Stats().OpenConnections
}

// AttemptsOf returns the attempts that err carries.
func AttemptsOf(err error) []Attempt {
	var u *UnavailableError
	if errors.As(err, &u) {
		return u.Attempts
	}
	return nil
}

// AlwaysPing has idle connections of shard pinged however fresh they are. Call
// it before there are any.
func (r *Router) AlwaysPing(shard string) { r.pools[shard].pingAfter = 0 }
