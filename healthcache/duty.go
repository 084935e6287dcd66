package healthcache

import "time"

// standing is what decides whether this instance probes a shard on its own
// account: the lease's holder does, whoever has nobody to learn from, and who
// cannot go by what the others see.
type standing struct {
	lease bool      // this instance holds the shard's lease
	apart bool      // others reach the shard that is down for this instance
	alone bool      // Redis cannot be read, or there is none
	read  bool      // Redis has been read at least once
	began time.Time // when this instance began to watch
	heard time.Time // when a valid health key was last read; zero: never
	// confirmed is when Redis last confirmed the record of the shard's writer;
	// zero: there is none, or it never did.
	confirmed time.Time
}

// unconfirmed is how much of the life of a health key an instance goes without a
// confirmation of a writer's record before it looks for itself at the shard's
// nodes: an interval and a quarter. A quarter later it may write to none of them
// unless it has seen that the others take no writes.
func unconfirmed(life time.Duration) time.Duration { return life * 5 / 12 }

// dutyFrom is the moment from which this instance probes the shard each
// interval; the zero time means at once. Without the lease it is put off for as
// long as another instance's results keep coming, so that a lease held by
// nobody alive leaves no shard unwatched. What others found out says nothing of
// the record of a writer.
func dutyFrom(s standing, life, refreshTimeout time.Duration) time.Time {
	due := dutyOfHealth(s, life, refreshTimeout)
	if doubt := s.confirmed.Add(unconfirmed(life)); !s.confirmed.IsZero() && doubt.Before(due) {
		return doubt
	}
	return due
}

func dutyOfHealth(s standing, life, refreshTimeout time.Duration) time.Time {
	switch {
	case s.lease, s.apart, s.alone && s.heard.IsZero():
		return time.Time{}
	case s.alone:
		return s.heard.Add(life)
	case !s.read:
		return s.began.Add(refreshTimeout)
	default:
		return s.lastHeard().Add(life)
	}
}

// lastHeard is the last sign of a prober, or the start of the watch.
func (s standing) lastHeard() time.Time { return later(s.began, s.heard) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
