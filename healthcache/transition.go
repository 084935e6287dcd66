package healthcache

import "time"

// recoveryProbes is how many good probes in a row bring a shard back.
const recoveryProbes = 2

// occasion says why a probe ran, which decides how much its result weighs.
type occasion int

const (
	scheduled occasion = iota // the interval was over
	suspected                 // a request failed: the first of two pieces of evidence
	checked                   // somebody waits who has no better shard: one success is enough
)

// history is what the probes of one instance have led to so far. The zero
// value is a shard that was never probed.
type history struct {
	state State
	since time.Time
	// owed counts the good probes that are still missing before the shard
	// counts as up again.
	owed int
	// falls counts how often the shard went down of late; fell is when it last
	// did. Together they say how long it stays down at least.
	falls   int
	fell    time.Time
	damping damping
}

// seed continues a history that another instance wrote, from the status that
// it shared. That the shard last fell when it entered this state, by this host's
// clock, is as near as that status tells.
func seed(s Status, entered time.Time, d damping) history {
	h := history{state: s.State, since: s.Since, falls: s.Falls, fell: entered, damping: d}
	switch s.State {
	case Draining:
		h.state = Up
	case Down, ReadOnly, Misconfigured:
		h.owed = recoveryProbes
	}
	return h
}

// transition is the whole rule by which probes change the state of a shard:
// what was known, why a probe ran and what it found give what is known next.
// A state of Suspect asks for another probe at once.
func transition(h history, why occasion, found State, now time.Time) history {
	switch found {
	case Up:
		return h.succeed(why, now)
	case ReadOnly, Misconfigured:
		return h.fall(now).enter(found, now)
	case Busy:
		if h.owed > 0 {
			h.owed = recoveryProbes
		}
		return h.enter(Busy, now)
	default:
		return h.fail(why, now)
	}
}

func (h history) succeed(why occasion, now time.Time) history {
	h.owed = max(h.owed-1, 0)
	if why == checked {
		h.owed = 0
	}
	if h.owed > 0 || why != checked && h.confined(now) {
		return h
	}
	return h.enter(Up, now)
}

// confined reports that the shard fell too often of late to be up already.
// One that serves, or is only suspected, is none of these.
func (h history) confined(now time.Time) bool {
	out := h.state != Up && h.state != Suspect
	return out && now.Sub(h.fell) < h.damping.penalty(h.falls)
}

func (h history) fail(why occasion, now time.Time) history {
	if h.serving() && why != suspected {
		return h.enter(Suspect, now)
	}
	return h.fall(now).enter(Down, now)
}

func (h history) serving() bool { return h.state == Up || h.state == Busy && h.owed == 0 }

// recentFalls is how many falls are still held against the shard.
func (h history) recentFalls(now time.Time) int {
	return h.damping.remembered(h.falls, now.Sub(h.fell))
}

// fall counts that the shard goes out of service, unless it is.
func (h history) fall(now time.Time) history {
	if h.owed == 0 {
		h.falls, h.fell = h.recentFalls(now)+1, now
	}
	h.owed = recoveryProbes
	return h
}

func (h history) enter(state State, now time.Time) history {
	if h.state != state {
		h.state, h.since = state, now
	}
	return h
}
