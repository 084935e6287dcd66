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
	reports  chan struct{} // tells the reporter that results wait; holds one
	snapshot atomic.Pointer[Snapshot]
	foreign  names // of live shards that are not watched here

	// mu guards the rest, and every knowledge. Requests take it in Suspect,
	// Settle and Check, the probers around each probe, the refresher and the
	// reporter around each exchange with Redis; all for moments.
	mu     sync.Mutex
	shards map[string]*knowledge
	closed bool
}

func newBoard(cfg Config, token string) *board {
	b := &board{
		cfg:     cfg,
		token:   token,
		notices: newNotices(),
		reports: make(chan struct{}, 1),
		shards:  make(map[string]*knowledge, len(cfg.Shards)),
	}
	snap := make(Snapshot, len(cfg.Shards))
	now := time.Now()
	for _, shard := range cfg.Shards {
		b.shards[shard] = newKnowledge(shard, now, cfg.Redis == nil)
		snap[shard] = View{}
	}
	b.snapshot.Store(&snap)
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

// check asks for a probe on behalf of somebody who waits for its end.
func (b *board) check(shard string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.shards[shard]
	if k == nil || b.closed {
		return nil
	}
	r := k.ask()
	r.checked = true
	return r.done
}

// next returns the round that the prober of k shall carry out now, or nil and
// how long to wait before asking again. It lets old knowledge end on the way.
func (b *board) next(k *knowledge) (*round, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.publishLocked(now, k)
	at := k.probed.Add(b.cfg.pace())
	if k.round == nil {
		duty := dutyFrom(k.standing, b.cfg.life(), b.cfg.refreshTimeout())
		at = later(duty, k.probed.Add(b.cfg.Interval))
	}
	if now.Before(at) {
		return nil, min(at.Sub(now), b.cfg.Interval)
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
	if k.suspect != nil || r.confirming {
		limit = b.cfg.SuspicionTimeout
	}
	return r.arm(ctx, now, limit)
}

// conclude takes in the result of a probe, and reports whether the round goes
// on with another one.
func (b *board) conclude(k *knowledge, r *round, found Result, rtt time.Duration) (again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	k.learn(found, rtt, b.cfg.Instance, now, b.cfg.life())
	b.announceLocked(k)
	r.timer = nil
	if k.history.state == Suspect {
		r.confirming = true
		b.publishLocked(now, k)
		return true
	}
	b.settleLocked(now, k)
	return false
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

// announceLocked tells the reporter of a result that waits, if it is this
// instance's to write.
func (b *board) announceLocked(k *knowledge) {
	if !k.lease || !k.unreported {
		return
	}
	select {
	case b.reports <- struct{}{}:
	default:
	}
}

// setDrain sets or ends a drain in memory, ahead of the next reading.
func (b *board) setDrain(shard string, set bool, reason string, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k, now := b.shards[shard], time.Now()
	k.drainMoves++
	k.order(set, reason, now, until)
	b.publishLocked(now, k)
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
// notice for each that changed its state.
func (b *board) publishLocked(now time.Time, some ...*knowledge) {
	var next Snapshot
	for _, k := range some {
		view, src := merge(k.facts, now, b.cfg.life())
		if view.State != k.view.State {
			b.notices.push(notice{Change{k.shard, k.view.Status, view.Status, src.own()}, src})
		}
		same := view.equal(k.view)
		k.view = view
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
}
