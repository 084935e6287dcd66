package healthcache

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// board is the memory of a cache: it does no I/O and never waits.
type board struct {
	cfg      Config
	token    string
	notices  *notices
	reports  chan struct{} // tells the reporter that something waits; holds one
	hints    chan struct{} // tells the refresher that something is new; holds one
	snapshot atomic.Pointer[Snapshot]
	foreign  names // of live shards that are not watched here
	// index is shards, for those who do not take mu.
	index atomic.Pointer[map[string]*knowledge]

	// mu guards the rest, and every knowledge. Requests take it in Suspect,
	// Settle and Check, the probers around each probe, the refresher and the
	// reporter around each exchange with Redis; all for moments.
	mu     sync.Mutex
	order  []string              // the shards watched, as they were named
	shards map[string]*knowledge // replaced as a whole
	closed bool
	news   map[string]bool // shards whose keys this instance changed, to be told
	inbox  inbox
}

func newBoard(cfg Config, token string) *board {
	b := &board{
		cfg:     cfg,
		token:   token,
		notices: newNotices(),
		reports: make(chan struct{}, 1),
		hints:   make(chan struct{}, 1),
		news:    map[string]bool{},
		inbox:   newInbox(),
	}
	b.snapshot.Store(&Snapshot{})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watchLocked(cfg.Shards, time.Now())
	return b
}

// begin marks the moment from which the cache watches.
func (b *board) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.shards {
		k.began = time.Now()
	}
}

// suspect notes a failed request, and asks for a probe.
func (b *board) suspect(shard, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.shards[shard]
	if k == nil || b.closed {
		return
	}
	now := time.Now()
	if s, src := k.base(now, b.cfg.life()); src == fromProbe && !suspectable(s.State) && s.State != Suspect {
		return // this instance has just seen for itself that the shard is unfit
	}
	if k.suspect == nil {
		k.suspect = &suspicion{reason: clip(reason), since: now}
	}
	k.ask().shorten(now, b.cfg.SuspicionTimeout)
	b.publishLocked(now, k)
}

// hanging returns what ends with the suspicion over shard; nil: there is none.
func (b *board) hanging(shard string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.shards[shard]
	if k == nil || k.round == nil {
		return nil
	}
	if k.suspect == nil && k.history.state != Suspect {
		return nil
	}
	return k.round.done
}

// check asks for a probe on behalf of somebody who waits for its end, and
// reports whether it runs already.
func (b *board) check(shard string) (done <-chan struct{}, runs bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.shards[shard]
	if k == nil || b.closed {
		return nil, false
	}
	r := k.ask()
	r.checked = true
	return r.done, r.timer != nil
}

// look asks for a probe of a shard that is unfit by hearsay. What it finds
// counts at once, as if somebody had checked.
func (b *board) look(shard string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.shards[shard]
	if k == nil || b.closed || k.round != nil || !k.view.Hearsay {
		return
	}
	r := k.ask()
	r.checked, r.brief = true, true
}

// next returns the round that the prober of k shall carry out now, or nil and
// how long to wait before asking again. It lets old knowledge end on the way.
// confirmed is as in standing.
func (b *board) next(k *knowledge, confirmed time.Time) (*round, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.publishLocked(now, k)
	at := k.probed.Add(b.cfg.pace())
	if k.round == nil {
		k.apart, k.confirmed = k.verdict == contradicted && k.contested(now, b.cfg.life()), confirmed
		duty := dutyFrom(k.standing, b.cfg.life(), b.cfg.refreshTimeout())
		at = later(duty, k.probed.Add(b.cfg.Interval))
	}
	if now.Before(at) {
		return nil, min(at.Sub(now), b.cfg.life())
	}
	if k.round == nil {
		k.round = newRound()
	}
	return k.round, 0
}

// open begins a probe of a round: it returns the probe's context.
func (b *board) open(ctx context.Context, k *knowledge, r *round) (context.Context, context.CancelFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	k.probed = now
	k.pinned = k.own.fresh(now, b.cfg.life())
	limit := b.cfg.ProbeTimeout
	if k.suspect != nil || k.summoned || r.brief || r.confirming {
		limit = b.cfg.SuspicionTimeout
	}
	return r.arm(ctx, now, limit)
}

// conclude takes in the result of a probe, and reports whether the round goes
// on with another one, and whether witnesses are to be called.
func (b *board) conclude(k *knowledge, r *round, found Result, rtt time.Duration) (again, accuse bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	k.learn(found, rtt, b.cfg.Instance, now, b.cfg.life())
	if accuse = k.accuses(now, b.cfg.life(), b.cfg.retrial()); accuse && b.nobodyElseLocked(k) {
		accuse, k.verdict = false, agreed
	}
	b.announceLocked(k)
	r.timer = nil
	if k.history.state == Suspect {
		r.confirming = true
		b.publishLocked(now, k)
		return true, accuse
	}
	b.settleLocked(now, k)
	return false, accuse
}

// nobodyElseLocked reports that there is no other instance to ask about k.
func (b *board) nobodyElseLocked(k *knowledge) bool { return k.alone || b.inbox.members == 1 }

// judged takes in what the fleet makes of a shard that is down for this
// instance, and reports whether the lease is to be handed on.
func (b *board) judged(shard string, found verdict) (yield bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k, now := b.shards[shard], time.Now()
	if k == nil || !k.accused {
		return false // it is not watched any more, or has recovered meanwhile
	}
	k.verdict = found
	k.post.due = true
	if found == contradicted && k.lease {
		k.lose()
		yield = true
	}
	b.announceLocked(k)
	b.publishLocked(now, k)
	return yield
}

// proberOf names the instance that wrote the record of shard, if any.
func (b *board) proberOf(shard string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := b.shards[shard]; k != nil {
		return k.fleet.status.By
	}
	return ""
}

// settleLocked ends the round. The waiters read the snapshot without the lock,
// so it is published first.
func (b *board) settleLocked(now time.Time, k *knowledge) {
	r := k.settle()
	b.publishLocked(now, k)
	if r != nil {
		close(r.done)
	}
}

// announceLocked tells the reporter of what waits to be written, if it is this
// instance's to write.
func (b *board) announceLocked(k *knowledge) {
	if k.testimony != "" || k.lease && k.post.due {
		signal(b.reports)
	}
}

// signal wakes who waits for c, now or the next time.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// setDrain sets or ends a drain in memory, ahead of the next reading.
func (b *board) setDrain(shard string, set bool, reason string, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k, now := b.shards[shard], time.Now()
	if k == nil {
		return
	}
	k.drainMoves++
	k.order(set, reason, now, until)
	b.rewriteLocked(k)
	b.publishLocked(now, k)
}

// rewriteLocked has the record say what an order changed.
func (b *board) rewriteLocked(k *knowledge) {
	k.post.due = true
	b.announceLocked(k)
}

// close lets nobody ask any more.
func (b *board) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}

// abandon ends the rounds that nobody will carry out any more.
func (b *board) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, k := range b.shards {
		b.settleLocked(now, k)
	}
}

// publishLocked brings the snapshot up to date for some shards, and queues a
// notice for each that changed its state, or is drained or no longer drained.
// The snapshot comes first: whoever is told looks at it without the lock, and
// must not find there what was before.
func (b *board) publishLocked(now time.Time, some ...*knowledge) {
	var next Snapshot
	var told []notice
	for _, k := range some {
		if b.shards[k.shard] != k {
			continue // not watched any more
		}
		k.used = k.lastUse()
		view, src := merge(k.facts, now, b.cfg.life())
		if view.State != k.view.State || view.Drained != k.view.Drained {
			told = append(told, notice{Change{k.shard, k.view.Status, view.Status, src.own()}, src, &k.quota})
		}
		same := view.equal(k.view)
		k.view, k.from = view, src
		if same {
			continue
		}
		if next == nil {
			next = maps.Clone(*b.snapshot.Load())
		}
		next[k.shard] = view
	}
	if next != nil {
		b.snapshot.Store(&next)
	}
	b.notices.push(told...)
}
