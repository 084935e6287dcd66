package healthcache

import (
	"slices"
	"time"
)

// source says where a view comes from.
type source string

const (
	fromNowhere source = "none"
	fromProbe   source = "own probe"
	fromRequest source = "own request"
	fromFleet   source = "health key"
)

// own reports whether this instance saw it itself.
func (s source) own() bool { return s == fromProbe || s == fromRequest }

// evidence is what one source says of a shard. The zero value says nothing.
type evidence struct {
	status Status
	at     time.Time // when this instance got it, by its own clock
}

func (e evidence) fresh(now time.Time, life time.Duration) bool {
	return !e.at.IsZero() && now.Sub(e.at) <= life
}

// drainOrder is an operator's order as this instance knows it.
type drainOrder struct {
	set    bool
	reason string
	since  time.Time // when this instance learnt of it
	until  time.Time // zero: no end that this instance has to watch
}

func (d drainOrder) stands(now time.Time) bool {
	return d.set && (d.until.IsZero() || now.Before(d.until))
}

// suspicion is a failed request that a probe has not judged yet.
type suspicion struct {
	reason string
	since  time.Time
}

// facts is everything that the view of one shard is made of.
type facts struct {
	own   evidence // of the last own probe
	fleet evidence // of the health key
	// pinned keeps own alive beyond its time, while the probe runs that will
	// succeed it.
	pinned  bool
	suspect *suspicion
	drain   drainOrder
}

// base is the better of the two pieces of evidence: what this instance saw
// itself in the last moments, else what Redis says, else nothing.
func (f facts) base(now time.Time, life time.Duration) (Status, source) {
	switch {
	case f.ownCounts(now, life):
		return f.own.status, fromProbe
	case f.fleet.fresh(now, life):
		s := f.fleet.status
		if s.State == Draining {
			s.State = Up
		}
		return s, fromFleet
	default:
		return Status{}, fromNowhere
	}
}

func (f facts) ownCounts(now time.Time, life time.Duration) bool {
	return f.pinned || f.own.fresh(now, life)
}

// merge makes the view of a shard from the facts.
func merge(f facts, now time.Time, life time.Duration) (View, source) {
	s, src := f.base(now, life)
	if f.suspect != nil && suspectable(s.State) {
		s.State, s.Since, s.Reason, src = Suspect, f.suspect.since, f.suspect.reason, fromRequest
	}
	v := View{Status: s}
	if f.drain.stands(now) {
		v.Drained, v.DrainReason = true, f.drain.reason
		v.Status = f.drain.hide(s)
	}
	return v, src
}

// suspectable reports whether one failed request changes what is thought of a
// shard in this state.
func suspectable(s State) bool {
	return s == Up || s == Unknown || s == Busy || s == Draining
}

// hide is the status of a shard under the order: it hides that the shard is
// up, and nothing else.
func (d drainOrder) hide(s Status) Status {
	if s.State != Up {
		return s
	}
	s.State, s.Reason = Draining, d.reason
	if d.since.After(s.Since) {
		s.Since = d.since
	}
	return s
}

// equal reports whether two views say the same.
func (v View) equal(o View) bool {
	return v.State == o.State && v.Reason == o.Reason && v.By == o.By && v.RTT == o.RTT &&
		v.Since.Equal(o.Since) && v.CheckedAt.Equal(o.CheckedAt) &&
		v.Contested == o.Contested && v.Drained == o.Drained && v.DrainReason == o.DrainReason && slices.Equal(v.Nodes, o.Nodes)
}
