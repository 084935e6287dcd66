package healthcache

import (
	"cmp"
	"sync/atomic"
	"time"
)

// knowledge is all that this instance knows of one shard. The board's mutex
// guards it, except the first fields: two do not change, one is atomic.
type knowledge struct {
	shard string
	wake  chan struct{} // tells the shard's prober to look again; holds one
	used  atomic.Int64  // when a request last succeeded; Unix time in nanoseconds

	facts
	standing
	history    history   // of the own probes
	probed     time.Time // when the last own probe began
	round      *round    // that is asked for or runs; nil: none
	drainMoves int       // counts the orders given through this instance
	unreported bool      // an own result waits to be written to Redis
	shared     shared

	view View // as it was last published
}

// shared is what the health key last said, in the words in which it did, so
// that "since" stays the same to the digit while the state does.
type shared struct {
	state State
	since string
}

func newKnowledge(shard string, now time.Time, alone bool) *knowledge {
	return &knowledge{
		shard:    shard,
		wake:     make(chan struct{}, 1),
		standing: standing{alone: alone, began: now},
	}
}

// nudge wakes the prober; a nudge that is already waiting is enough.
func (k *knowledge) nudge() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
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
	before, _ := k.base(now, life)
	if !k.ownCounts(now, life) {
		k.history = seed(before)
	}
	k.history = transition(k.history, k.occasion(), r.State, now)
	s := Status{State: k.history.state, Since: k.history.since, CheckedAt: now, By: by, Nodes: r.Nodes}
	switch {
	case r.State != Up:
		s.Reason, s.RTT = cmp.Or(r.Reason, "probe failed"), k.own.status.RTT
	case s.State != Up:
		s.Reason, s.RTT = before.Reason, max(rtt.Microseconds(), 1)
	default:
		s.RTT = max(rtt.Microseconds(), 1)
	}
	k.own = evidence{status: s, at: now}
	k.unreported = true
}

// absorb takes in what was read of the shard's keys. moves is drainMoves as it
// was before reading: an order given since then is newer than what was read.
func (k *knowledge) absorb(keys keyset, clock clock, now time.Time, token string, moves int) {
	k.alone = keys.health.failed
	k.read = true
	if !keys.health.failed {
		k.absorbHealth(keys.health, clock, now)
	}
	if !keys.drain.failed && moves == k.drainMoves {
		k.order(keys.drain.exists, keys.drain.value, now, time.Time{})
	}
	if !keys.lease.failed {
		k.lease = keys.lease.exists && keys.lease.value == token
	}
}

func (k *knowledge) absorbHealth(health cell, clock clock, now time.Time) {
	k.fleet = evidence{}
	if !health.exists {
		return
	}
	s, err := decodeStatus(health.value, clock)
	if err != nil {
		return
	}
	k.fleet, k.heard = evidence{status: s, at: now}, now
	k.shared = shared{state: s.State, since: s.Since.UTC().Format(timeLayout)}
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
// the script then judges whether it is a lease at all.
func (k *knowledge) wantsLease(lease cell, now time.Time, life time.Duration) bool {
	if lease.failed {
		return false
	}
	return k.lease || !lease.exists || now.Sub(k.lastHeard()) >= life
}

// record is the own result as the health key shall hold it.
func (k *knowledge) record(now time.Time) report {
	s := k.own.status
	if k.drain.stands(now) {
		s = k.drain.hide(s)
	}
	r := report{shard: k.shard, status: s, age: max(now.Sub(s.Since), 0)}
	if k.shared.state == s.State {
		r.since = k.shared.since
	}
	return r
}
