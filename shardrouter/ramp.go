package shardrouter

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// ramp brings the connections of a shard back little by little after the shard
// was out of service, so that it is not felled by those who waited for it. It
// lets at most so many leases out as connections may be open by now, and so
// many connections be opened. It has no goroutine and no timer of its own: who
// waits knows when it is the next one's turn. A nil ramp holds nobody back.
// Safe for use by several goroutines.
type ramp struct {
	// begins gives the pace; false: the shard is not back yet, and whoever
	// asks only finds that out.
	begins func() (pace, bool)
	most   int // connections of the pool

	turn  chan struct{} // held by the first of those who wait for a place
	freed chan struct{} // tells him that a place came free; holds one

	mu    sync.Mutex // guards the rest; held for moments by requests
	pace  pace
	start time.Time // zero: the shard is not back yet
	taken int       // places of leases
	dials int       // connections opened, or about to be
}

func newRamp(most int, begins func() (pace, bool)) *ramp {
	return &ramp{begins: begins, most: most, turn: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
}

// begin starts the clock if the shard is back and nobody has started it.
func (r *ramp) begin() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginLocked()
}

func (r *ramp) beginLocked() (begun bool) {
	if !r.start.IsZero() {
		return true
	}
	p, ok := r.begins()
	if ok {
		r.pace, r.start = p, time.Now()
	}
	return ok
}

// begun reports whether the clock runs, which is when connections come back.
func (r *ramp) begun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.start.IsZero()
}

// over reports whether the ramp holds nobody back any more.
func (r *ramp) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.start.IsZero() && time.Since(r.start) >= r.pace.length(r.most)
}

// tryEnter takes a place if one is free and nobody waits for it.
func (r *ramp) tryEnter() bool {
	return r == nil || len(r.turn) == 0 && r.take() <= 0
}

// enter takes a place, first come first served, and waits for one until ctx is
// done.
func (r *ramp) enter(ctx context.Context) error {
	if r == nil {
		return nil
	}
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		wait := r.take()
		if wait <= 0 {
			return nil
		}
		if err := r.pause(ctx, wait); err != nil {
			return err
		}
	}
}

// take takes a place and returns 0, or how long it is until there is another.
func (r *ramp) take() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := r.leftLocked(r.taken)
	if wait <= 0 {
		r.taken++
	}
	return wait
}

// leftLocked is the time until the n-th connection may be open.
func (r *ramp) leftLocked(n int) time.Duration {
	if !r.beginLocked() {
		return 0
	}
	since := time.Since(r.start)
	if since >= r.pace.length(r.most) {
		return 0
	}
	return r.pace.at(n) - since
}

// pause waits until a place came free, or for d.
func (r *ramp) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-r.freed:
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// leave gives a place back.
func (r *ramp) leave() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.taken--
	r.mu.Unlock()
	select {
	case r.freed <- struct{}{}:
	default:
	}
}

// dial waits until one more connection may be opened. Most who have a place
// need not wait; only where connections were opened and not kept, there are
// more leases than connections yet to open. It is ErrBusy at once when ctx
// would end before.
func (r *ramp) dial(ctx context.Context) error {
	if r == nil {
		return nil
	}
	wait, err := r.reserve(ctx)
	if err != nil {
		return err
	}
	if wait > 0 && !sleep(ctx, wait) {
		return ctx.Err()
	}
	return nil
}

func (r *ramp) reserve(ctx context.Context) (time.Duration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := r.leftLocked(r.dials)
	if end, ok := ctx.Deadline(); ok && wait > 0 && time.Until(end) <= wait {
		return 0, fmt.Errorf("%w: connections come back little by little after an outage", ErrBusy)
	}
	if !r.start.IsZero() {
		r.dials++
	}
	return wait, nil
}
