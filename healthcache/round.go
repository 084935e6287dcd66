package healthcache

import (
	"context"
	"time"
)

// round is one answer to the question how a shard is: one probe, or two where
// the first one's failure has to be confirmed. A shard has at most one round;
// whoever asks meanwhile joins it. The board's mutex guards it.
type round struct {
	done       chan struct{} // closed when the round is over
	checked    bool          // somebody asked by Check
	brief      bool          // nobody asked by Check alone: the time of a suspicion is enough
	confirming bool          // the probe that runs is the second one

	// The probe that runs; timer is nil while none does.
	timer    *time.Timer
	deadline time.Time
}

func newRound() *round { return &round{done: make(chan struct{})} }

// arm begins the time of a probe. The returned function gives back what the
// context needs.
func (r *round) arm(parent context.Context, now time.Time, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx := newProbeContext(parent, now.Add(limit))
	unlink := context.AfterFunc(parent, func() { ctx.end(parent.Err()) })
	timer := time.AfterFunc(limit, func() { ctx.end(context.DeadlineExceeded) })
	r.timer, r.deadline = timer, ctx.latest
	return ctx, func() {
		unlink()
		timer.Stop()
		ctx.end(context.Canceled)
	}
}

// shorten leaves a running probe at most limit from now.
func (r *round) shorten(now time.Time, limit time.Duration) {
	if end := now.Add(limit); r.timer != nil && end.Before(r.deadline) {
		r.deadline = end
		r.timer.Reset(limit)
	}
}
