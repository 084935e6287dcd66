package shardrouter

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// bulkhead stands in front of one shard's sql.DB and bounds three things: how
// many leases are out, how many requests wait for one, and for how long. A
// full or frozen shard so takes nothing from the requests of the others.
// sql.DB alone would let its waiters queue without a bound, and serve them one
// dial at a time. Safe for use by several goroutines.
type bulkhead struct {
	slots      *semaphore.Weighted
	maxWaiting int64
	wait       time.Duration
	inUse      atomic.Int64
	waiting    atomic.Int64
}

func newBulkhead(slots, maxWaiting int, wait time.Duration) *bulkhead {
	return &bulkhead{
		slots:      semaphore.NewWeighted(int64(slots)),
		maxWaiting: int64(maxWaiting),
		wait:       wait,
	}
}

// enter takes a slot, first come first served, and waits for one until the
// deadline at the latest. Nested callers, who already hold a slot, never wait:
// with every slot in such hands they would wait for each other.
func (b *bulkhead) enter(ctx context.Context, e *era, deadline time.Time, nested bool) error {
	if !b.slots.TryAcquire(1) {
		if nested {
			return ErrNestedLease
		}
		if err := b.queue(ctx, e, deadline); err != nil {
			return err
		}
	}
	b.inUse.Add(1)
	return nil
}

func (b *bulkhead) queue(ctx context.Context, e *era, deadline time.Time) error {
	defer b.waiting.Add(-1)
	if n := b.waiting.Add(1); n > b.maxWaiting {
		return fmt.Errorf("%w: %d requests are waiting already", ErrBusy, b.maxWaiting)
	}
	wait := min(b.wait, time.Until(deadline))
	waitCtx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	if b.slots.Acquire(waitCtx, 1) == nil {
		return nil
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case e.ended():
		return ErrShardDown
	default:
		return fmt.Errorf("%w: no connection came free within %v", ErrBusy, wait)
	}
}

func (b *bulkhead) leave() {
	b.inUse.Add(-1)
	b.slots.Release(1)
}
