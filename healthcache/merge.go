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
	fromUse     source = "own use"
	fromFleet   source = "health key"
)

// own reports whether this instance saw it itself.
func (s source) own() bool { return s == fromProbe || s == fromRequest || s == fromUse }

// evidence is what one source says of a shard. The zero value says nothing.
type evidence struct {
	status Status
	at     time.Time // when this instance got it, by its own clock
}

func (e evidence) fresh(now time.Time, life time.Duration) bool {
	return !e.at.IsZero() && now.Sub(e.at) <= life
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
	// entered is when the state in the health key was, by this host's clock: that
	// of the dates in it is Redis's.
	entered time.Time
	// pinned keeps own alive beyond its time, while the probe runs that will
	// succeed it.
	pinned  bool
	suspect *suspicion
	drain   drainOrder
	used    time.Time // when a request last succeeded here
	verdict verdict   // of the fleet, on an own Down
	// borneOut is the "since" of the unfit state in the health key that an own
	// probe found too.
	borneOut time.Time
	// inherited: the unfit state of own was read in the health key, and no own
	// probe has found it.
	inherited bool
}

// base is the better of the pieces of evidence: what this instance saw itself
// in the last moments, else what Redis says, else nothing.
func (f facts) base(now time.Time, life time.Duration) (Status, source) {
	switch {
	case f.ownCounts(now, life):
		return f.own.status, fromProbe
	case f.fleet.fresh(now, life):
		s := f.fleet.status
		if s.State == Down && f.usedLately(now, life) {
			return Status{State: Up, Since: f.used, CheckedAt: f.used}, fromUse
		}
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

func (f facts) usedLately(now time.Time, life time.Duration) bool {
	return !f.used.IsZero() && now.Sub(f.used) <= life
}

// contested reports that the shard is down for this instance and, as far as is
// known, for no other.
func (f facts) contested(now time.Time, life time.Duration) bool {
	own := f.ownCounts(now, life) && f.own.status.State == Down
	return own && !f.shared(now, life) && f.verdict != agreed
}

// shared reports that the shard is down by the health key.
func (f facts) shared(now time.Time, life time.Duration) bool {
	return f.fleet.fresh(now, life) && f.fleet.status.State == Down
}

// merge makes the view of a shard from the facts.
func merge(f facts, now time.Time, life time.Duration) (View, source) {
	s, src := f.base(now, life)
	if f.suspect != nil && suspectable(s.State) {
		s.State, s.Since, s.Reason, src = Suspect, f.suspect.since, f.suspect.reason, fromRequest
	}
	v := View{Status: s, Contested: s.State == Down && f.contested(now, life)}
	v.Hearsay = unfit(s.State) && (src == fromFleet && !s.Since.Equal(f.borneOut) || src == fromProbe && f.inherited)
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

// unfit reports whether a shard in this state serves nobody.
func unfit(s State) bool { return s == Down || s == ReadOnly || s == Misconfigured }

// equal reports whether two views say the same.
func (v View) equal(o View) bool {
	return v.State == o.State && v.Reason == o.Reason && v.Alarm == o.Alarm && v.By == o.By && v.RTT == o.RTT && v.Falls == o.Falls &&
		v.Since.Equal(o.Since) && v.CheckedAt.Equal(o.CheckedAt) &&
		v.Contested == o.Contested && v.Hearsay == o.Hearsay && v.Drained == o.Drained && v.DrainReason == o.DrainReason && slices.Equal(v.Nodes, o.Nodes)
}
