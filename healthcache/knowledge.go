package healthcache

import (
	"cmp"
	"sync/atomic"
	"time"
)

// knowledge is all that this instance knows of one shard. The board's mutex
// guards it, except the first fields: three do not change, one is atomic, and one is
// another goroutine's.
type knowledge struct {
	shard   string
	wake    chan struct{} // tells the shard's prober to look again; holds one
	success atomic.Int64  // when a request last succeeded; nanoseconds since origin, 0: never
	origin  time.Time     // has a monotonic reading: uses are not dated anew with the host's clock
	quota   quota

	facts
	standing
	history    history   // of the own probes
	found      State     // by the last own probe, whatever it led to
	probed     time.Time // when the last own probe began
	round      *round    // that is asked for or runs; nil: none
	drainMoves int       // counts the orders given through this instance
	accused    bool      // witnesses were called, or need not be
	judged     time.Time // when they were called last
	summoned   bool      // the next result is owed to others as a testimony
	testimony  string    // a word that waits to be written; empty: none
	post       post
	print      string // of the keys as they were read last; see sweep
	holder     string // of the lease as it was read last

	view View   // as it was last published
	from source // of the view
}

func newKnowledge(shard string, now time.Time, alone bool, d damping) *knowledge {
	return &knowledge{
		shard:    shard,
		origin:   now,
		wake:     make(chan struct{}, 1),
		history:  history{damping: d},
		standing: standing{alone: alone, began: now},
	}
}

// nudge wakes the prober; a nudge that is already waiting is enough.
func (k *knowledge) nudge() { signal(k.wake) }

// succeeded notes that a request succeeds now.
func (k *knowledge) succeeded() { k.success.Store(max(int64(time.Since(k.origin)), 1)) }

// lastUse is when a request last succeeded; zero: never.
func (k *knowledge) lastUse() time.Time {
	nanos := k.success.Load()
	if nanos == 0 {
		return time.Time{}
	}
	return k.origin.Add(time.Duration(nanos))
}

// ask joins the round, or asks for one.
func (k *knowledge) ask() *round {
	if k.round == nil {
		k.round = newRound()
		k.nudge()
	}
	return k.round
}

// settle takes the round away, with the suspicion that it judged. Whoever
// waits for it is to be told when the outcome is published.
func (k *knowledge) settle() *round {
	r := k.round
	k.round, k.suspect, k.pinned = nil, nil, false
	return r
}

// occasion says what the result of the present round weighs.
func (k *knowledge) occasion() occasion {
	switch {
	case k.suspect != nil:
		return suspected
	case k.round != nil && k.round.checked:
		return checked
	default:
		return scheduled
	}
}

// learn takes in the result of an own probe.
func (k *knowledge) learn(r Result, rtt time.Duration, by string, now time.Time, life time.Duration) {
	before, src := k.base(now, life)
	if !k.ownCounts(now, life) {
		entered := before.Since
		if src == fromFleet {
			entered = k.entered
		}
		k.history = seed(before, entered, k.history.damping)
		k.accused, k.verdict = false, unjudged
		k.inherited = unfit(before.State) && !before.Since.Equal(k.borneOut)
	}
	k.history = transition(k.history, k.occasion(), r.State, now)
	s := Status{State: k.history.state, Since: k.history.since, CheckedAt: now, By: by, Alarm: r.Alarm, Nodes: r.Nodes}
	s.Falls = k.history.recentFalls(now)
	switch {
	case r.State != Up:
		s.Reason, s.RTT = cmp.Or(r.Reason, "probe failed"), k.own.status.RTT
	case s.State != Up:
		s.Reason, s.RTT = before.Reason, max(rtt.Microseconds(), 1)
	default:
		s.RTT = max(rtt.Microseconds(), 1)
	}
	k.own, k.found = evidence{status: s, at: now}, r.State
	k.inherited = k.inherited && unfit(s.State) && !unfit(r.State)
	k.bearOut(now, life)
	if s.State != Down {
		k.accused, k.verdict = false, unjudged
	}
	if k.summoned {
		k.summoned, k.testimony = false, wordOn(r.State)
	}
	k.note(now)
}

// bearOut notes that this instance found what the health key says. Once is enough
// for as long as the shard is in that state: a shard that is down for long is not
// to be looked at by every instance again and again.
func (k *knowledge) bearOut(now time.Time, life time.Duration) {
	if k.own.fresh(now, life) && unfit(k.found) && k.fleet.fresh(now, life) && unfit(k.fleet.status.State) {
		k.borneOut = k.fleet.status.Since
	}
}

// accuses reports whether witnesses are to be called now: once for each time
// that the shard goes down in the eyes of this instance alone, and again at times
// while it is down by this instance's word, for all or for itself, which may have
// been believed because nobody answered. A contradiction is gone into again when
// nobody who reaches the shard has written so since. Nobody is called while it is on
// its way back.
func (k *knowledge) accuses(now time.Time, life, again time.Duration) bool {
	if k.found != Down || k.history.state != Down {
		return false
	}
	first := !k.accused && k.contested(now, life)
	retrial := (k.lease || !k.shared(now, life)) && k.verdict == agreed && now.Sub(k.judged) >= again
	orphaned := k.verdict == contradicted && !k.alone && !k.fleet.fresh(now, life) && now.Sub(k.judged) >= life
	if first || retrial || orphaned {
		k.accused, k.judged = true, now
		return true
	}
	return false
}

// summon asks this instance for its word on the shard. That the shard is down
// need not be seen twice within fresh; that it lives has to be seen now, since
// it may have died a moment ago.
func (k *knowledge) summon(now time.Time, fresh, pace, limit time.Duration) {
	switch {
	case k.own.fresh(now, fresh) && k.found == Down:
		k.testimony = wordDown
	case k.own.fresh(now, pace), k.usedLately(now, pace):
		k.testimony = wordAlive
	default:
		k.summoned = true
		k.ask().shorten(now, limit)
	}
}

// absorb takes in what was read of the shard's keys. moves is drainMoves as it
// was before reading: an order given since then is newer than what was read.
func (k *knowledge) absorb(keys keyset, clock clock, now time.Time, life time.Duration, token string, moves int) {
	k.rejoin(keys.health.failed)
	k.print, k.holder = keys.print(), keys.lease.value
	if !keys.health.failed {
		k.absorbHealth(keys.health, clock, now, life)
		k.bearOut(now, life)
	}
	k.absorbDrain(keys.drain, now, moves)
	if keys.lease.failed {
		return
	}
	if mine := keys.lease.exists && keys.lease.value == token; mine {
		k.lease = true
	} else if k.lease {
		k.lose()
	}
}

// rejoin notes whether Redis could be read. What this instance found while it
// stood alone is looked at with the others now.
func (k *knowledge) rejoin(failed bool) {
	if k.alone && !failed {
		k.accused, k.verdict = false, unjudged
		if k.found == Down {
			k.ask()
		}
	}
	k.alone, k.read = failed, true
}

func (k *knowledge) absorbHealth(health cell, clock clock, now time.Time, life time.Duration) {
	k.fleet = evidence{}
	if !health.exists {
		return
	}
	s, err := decodeStatus(health.value, clock)
	if err != nil {
		if k.lease {
			k.post.mend(now, life)
		}
		return
	}
	k.fleet, k.heard = evidence{status: s, at: now}, now
	k.entered = now.Add(-max(cmp.Or(clock.now, s.CheckedAt).Sub(s.Since), 0))
	k.post.read(s)
}

// absorbDrain takes in what was read of the drain key, and reports whether it
// says something else than was known.
func (k *knowledge) absorbDrain(drain cell, now time.Time, moves int) (news bool) {
	if drain.failed || moves != k.drainMoves {
		return false
	}
	news = k.drain.differs(drain, now)
	var until time.Time
	if drain.left > 0 {
		until = now.Add(drain.left)
	}
	k.order(drain.exists, drain.value, now, until)
	return news
}

// unchanged takes in that the keys are as they were read last, which is not to
// be called for a record that was not renewed in time. It reports whether the
// view may be another all the same.
func (k *knowledge) unchanged(now time.Time) (stale bool) {
	k.rejoin(false)
	k.fleet.at, k.heard = now, now
	return k.from != fromFleet || k.drain.set || k.fleet.status.State == Down
}

// order sets or ends the drain.
func (k *knowledge) order(set bool, reason string, now, until time.Time) {
	if !set {
		k.drain = drainOrder{}
		return
	}
	since := k.drain.since
	if !k.drain.set {
		since = now
	}
	k.drain = drainOrder{set: true, reason: clip(reason), since: since, until: until}
}

// wantsLease reports whether to take the lease or extend it, after keys were
// read. Another's lease is left alone unless nothing is heard of its holder;
// the script then judges whether it is a lease at all. Who is contradicted by
// others leaves the probing to them.
func (k *knowledge) wantsLease(lease cell, now time.Time, life time.Duration) bool {
	if lease.failed || k.verdict == contradicted {
		return false
	}
	return k.lease || !lease.exists || now.Sub(k.lastHeard()) >= life
}
