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
}

// seed continues a history that another instance wrote, from the status that
// it shared.
func seed(s Status) history {
	h := history{state: s.State, since: s.Since}
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
		h.owed = recoveryProbes
		return h.enter(found, now)
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
	if h.owed > 0 {
		return h
	}
	return h.enter(Up, now)
}

func (h history) fail(why occasion, now time.Time) history {
	serving := h.state == Up || h.state == Busy && h.owed == 0
	if serving && why != suspected {
		return h.enter(Suspect, now)
	}
	h.owed = recoveryProbes
	return h.enter(Down, now)
}

func (h history) enter(state State, now time.Time) history {
	if h.state != state {
		h.state, h.since = state, now
	}
	return h
}
