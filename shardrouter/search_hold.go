package shardrouter

import (
	"context"
	"errors"
	"time"

	"github.com/shardhop/shardhop/healthcache"
)

// maxHolds bounds how often one request is held: a shard that proves writable
// and fails the request again, time after time, is not worth more.
const maxHolds = 5

// holds is what one search knows of its waiting.
type holds struct {
	count int
	until time.Time // the end of all of them together; set by the first
	// onward: the route's own shard was waited for in vain, so the others may
	// serve.
	onward bool
	// unwanted: the caller would rather hear of the failure.
	unwanted bool
}

// stays reports whether a route does not leave a failed shard; onward says that
// it has been waited for.
func (f OnFailure) stays(onward bool) bool {
	return f == OnFailureHold || f == OnFailureFail || f == OnFailureHoldFirst && !onward
}

// mayHold reports whether the failure of a round is worth waiting: there is no
// shard because none is there, and not because of load, or of a wrong setting
// that only an operator mends.
func (s *search) mayHold(err error) bool {
	var none *UnavailableError
	if !errors.As(err, &none) || !errors.Is(none.Cause, ErrUnavailable) {
		return false
	}
	m := s.waitedFor()
	if s.holds.unwanted || s.r.cfg.HoldTimeout == HoldNone || s.holds.count == maxHolds || m.OnFailure == OnFailureFail {
		return false
	}
	if s.r.health.View(m.Name).State == healthcache.Misconfigured {
		return false
	}
	for _, a := range none.Attempts {
		if a.Shard == m.Name && a.Verdict == VerdictMisconfigured {
			return false
		}
	}
	return true
}

// waitedFor is the shard that a hold of this search waits for: the route's own,
// or the first of the ring where there is none to be had.
func (s *search) waitedFor() *member {
	if m := s.layout.members[s.route.Shard]; m != nil {
		return m
	}
	return s.layout.members[s.ring[0].Name]
}

// wait is held for the shard, and makes the search ready for another round. The
// round that failed began at the time began. The request's own deadline ends a
// hold, and so does, for a route that may leave its shard, another shard of the
// group that comes up.
func (s *search) wait(ctx context.Context, began time.Time) error {
	m, start := s.waitedFor(), time.Now()
	if s.holds.count == 0 {
		s.holds.until = start.Add(s.r.cfg.HoldTimeout)
	}
	s.holds.count++
	var other <-chan struct{}
	if s.picked || !m.OnFailure.stays(s.holds.onward) {
		other = s.layout.groups[m.Group].news.next()
	}
	within, cancel := context.WithDeadlineCause(ctx, s.holds.until, ErrHoldOver)
	defer cancel()
	err := m.pool.hold.wait(within, s.outageBegan(m.Name, began), began, other)
	if f := s.r.cfg.Observer.Held; f != nil {
		f(m.Name, time.Since(start), err)
	}
	if errors.Is(err, ErrHoldOver) && m.OnFailure == OnFailureHoldFirst && !s.holds.onward {
		s.holds.onward, err = true, nil
	}
	s.anew(ctx)
	return err
}

// outageBegan is when the shard went out of service as far as is known here.
func (s *search) outageBegan(shard string, failed time.Time) time.Time {
	v := s.r.health.View(shard)
	if !usable(v) && !v.Since.IsZero() && v.Since.Before(failed) {
		return v.Since
	}
	return failed
}

// anew forgets the round that failed, with its part of the time: holds do not
// count against the budget of the attempts.
func (s *search) anew(ctx context.Context) {
	s.tried = nil
	s.deadline = time.Now().Add(s.r.cfg.AcquireTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(s.deadline) {
		s.deadline = d
	}
}

// heldInVain is the error of a search that waited, which tells also why it waits
// no longer. The end of the request itself passes as it is.
func (s *search) heldInVain(ctx context.Context, err, held error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(err, held)
}
