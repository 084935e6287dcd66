package shardrouter

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// mostSlots is the capacity of which a bulkhead keeps back what it does not have.
const mostSlots = math.MaxInt64

// bulkhead stands in front of one shard's sql.DB and bounds three things: how
// many leases are out, how many requests wait for one, and for how long. A
// full or frozen shard so takes nothing from the requests of the others.
// sql.DB alone would let its waiters queue without a bound, and serve them one
// dial at a time. Safe for use by several goroutines.
type bulkhead struct {
	slots      *semaphore.Weighted
	maxWaiting atomic.Int64
	wait       time.Duration
	// stalled is told that somebody has waited while the server answered
	// nothing, which is no sign of load. It may be called often.
	stalled func()

	inUse   atomic.Int64
	waiting atomic.Int64
	// answers counts what the server has answered: statements and handshakes.
	answers atomic.Uint64
	ramp    atomic.Pointer[ramp] // nil: connections come as they are asked for

	mu   sync.Mutex // guards the rest; held for moments by resize and leave
	size int
	owed int // slots that are taken, and do not come free again
}

func newBulkhead(slots, maxWaiting int, wait time.Duration, stalled func()) *bulkhead {
	b := &bulkhead{slots: semaphore.NewWeighted(mostSlots), wait: wait, stalled: stalled}
	b.slots.TryAcquire(mostSlots) // resize gives those that there are
	b.resize(slots, maxWaiting)
	return b
}

// resize changes how many leases may be out, and how many requests may wait.
// Where more are out, the slots come free no more when they come back.
func (b *bulkhead) resize(slots, maxWaiting int) {
	b.maxWaiting.Store(int64(maxWaiting))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.owed += b.size - slots
	b.size = slots
	for b.owed > 0 && b.slots.TryAcquire(1) {
		b.owed--
	}
	if b.owed < 0 {
		b.slots.Release(int64(-b.owed))
		b.owed = 0
	}
}

// visitor is what a bulkhead has to know of who wants in.
type visitor struct {
	deadline time.Time
	// nested: the visitor already holds a slot.
	nested bool
	// held: the visitor was held until the shard could serve again.
	held bool
}

// enter takes a slot, first come first served, and waits for one until the
// deadline at the latest. Nested visitors never wait for one: with every slot in
// such hands they would wait for each other. Those who were held are bounded in
// number already, and come back one by one as slots come free. The ramp that
// enter returns, if any, goes to leave.
//
// While connections come back little by little, who has to wait for that holds
// no slot meanwhile.
func (b *bulkhead) enter(ctx context.Context, e *era, v visitor) (*ramp, error) {
	r, ok := b.enterNow()
	if ok {
		return r, nil
	}
	if v.nested && r == nil {
		return nil, ErrNestedLease
	}
	if err := b.queue(ctx, e, v, r); err != nil {
		return nil, err
	}
	b.inUse.Add(1)
	return r, nil
}

// enterNow takes a slot if one is free. It returns the ramp that is on either
// way.
func (b *bulkhead) enterNow() (*ramp, bool) {
	r := b.ramping()
	if !r.tryEnter() {
		return r, false
	}
	if !b.slots.TryAcquire(1) {
		r.leave()
		return r, false
	}
	b.inUse.Add(1)
	return r, true
}

// ramping returns the ramp that is on, if any.
func (b *bulkhead) ramping() *ramp {
	r := b.ramp.Load()
	if r != nil && r.over() {
		b.ramp.CompareAndSwap(r, nil)
		return nil
	}
	return r
}

func (b *bulkhead) queue(ctx context.Context, e *era, v visitor, r *ramp) error {
	wait := time.Until(v.deadline)
	if !v.held {
		wait = min(b.wait, wait)
		defer b.waiting.Add(-1)
		if n := b.waiting.Add(1); n > b.maxWaiting.Load() {
			return fmt.Errorf("%w: %d requests are waiting already", ErrBusy, n-1)
		}
	}
	waitCtx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	look := b.lookout()
	defer time.AfterFunc(suspectAfter, look).Stop()
	if b.await(waitCtx, r) == nil {
		return nil
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case e.ended():
		return ErrShardDown
	}
	look()
	return fmt.Errorf("%w: no connection came free within %v", ErrBusy, wait)
}

// await takes a place on the ramp and then a slot.
func (b *bulkhead) await(ctx context.Context, r *ramp) error {
	if err := r.enter(ctx); err != nil {
		return err
	}
	if err := b.slots.Acquire(ctx, 1); err != nil {
		r.leave()
		return err
	}
	return nil
}

// lookout returns what tells of a stall if, when it is called, the server has
// answered nothing since now. Where nobody holds a lease there is nothing to
// answer.
func (b *bulkhead) lookout() func() {
	before := b.answers.Load()
	return func() {
		if b.inUse.Load() > 0 && b.answers.Load() == before {
			b.stalled()
		}
	}
}

// leave gives the slot back, and the place on the ramp that came with it.
func (b *bulkhead) leave(r *ramp) {
	b.inUse.Add(-1)
	b.free()
	r.leave()
}

// free gives a slot back, unless there is one too many.
func (b *bulkhead) free() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.owed > 0 {
		b.owed--
		return
	}
	b.slots.Release(1)
}
