package shardrouter

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// Bulkhead exposes a bulkhead and its era to the tests.
type Bulkhead struct {
	b *bulkhead
	e *era

	stalls atomic.Int64
}

func NewBulkhead(slots, maxWaiting int, wait time.Duration) *Bulkhead {
	t := &Bulkhead{e: newEra()}
	t.b = newBulkhead(slots, maxWaiting, wait, func() { t.stalls.Add(1) })
	return t
}

func (t *Bulkhead) Enter(ctx context.Context, budget time.Duration, nested bool) error {
	_, err := t.b.enter(ctx, t.e, visitor{deadline: time.Now().Add(budget), nested: nested})
	return err
}

// Ramp has places come free little by little: share in the first second.
func (t *Bulkhead) Ramp(share float64) {
	t.b.ramp.Store(newRamp(math.MaxInt32, func() (pace, bool) { return pace{share: share}, true }))
}

// Dial waits until a connection may be opened.
func (t *Bulkhead) Dial(ctx context.Context) error { return t.b.ramping().dial(ctx) }

// Leave ends a lease that was taken while the present ramp was on, if any is.
func (t *Bulkhead) Leave()       { t.b.leave(t.b.ramp.Load()) }
func (t *Bulkhead) Answer()      { t.b.answers.Add(1) }
func (t *Bulkhead) Stalls() int  { return int(t.stalls.Load()) }
func (t *Bulkhead) EndEra()      { t.e.end() }
func (t *Bulkhead) InUse() int   { return int(t.b.inUse.Load()) }
func (t *Bulkhead) Waiting() int { return int(t.b.waiting.Load()) }

// Cut ends the era of a shard, as a failed probe does.
func (r *Router) Cut(shard string) { r.layout.Load().pool(shard).cut() }

// OpenServerConns counts the connections that sql.DB has open.
func (r *Router) OpenServerConns(shard string) int {
	return r.layout.Load().pool(shard).db.Stats().OpenConnections
}

// CausalSession is the way to catch up on a server without SET STATEMENT.
func (l *Lease) CausalSession(ctx context.Context) error { return l.server.causalSession(ctx) }

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
func (r *Router) AlwaysPing(shard string) { r.layout.Load().pool(shard).pingAfter = 0 }
