package shardrouter

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// holdLinger is how long a hold goes on looking for a writable node after a
// request was last refused or gave up, so that the next one finds it at once.
const holdLinger = 5 * time.Second

// hold is where the requests of one shard wait for it to have a writable node
// again: at most so many of them, and at most so long after the outage began,
// whenever they came. Whoever waits holds nothing else meanwhile.
//
//	          a request fails                   time is over
//	no outage ──────────────► outage, requests ─────────────► outage, refused
//	    ▲                     wait                              at once │
//	    └───────────── a node has proved writable ◄─────────────────────┘
//
// An outage is a stretch of time and not a pair of messages: what was proved
// after a request failed ends its wait before it begins, a second beginning
// changes nothing, and each shard has a hold of its own. Safe for use by several
// goroutines.
type hold struct {
	holdConfig
	ctx   context.Context // ends with the router
	stop  context.CancelFunc
	looks sync.WaitGroup

	outage atomic.Bool // as began says

	born time.Time
	// lent is when the search began that last got a lease, counted from born.
	lent atomic.Int64

	mu sync.Mutex // guards the rest; held for moments by requests and the look
	// began is when the present outage began; zero: there is none.
	began time.Time
	// proof is closed by the end of the present outage.
	proof chan struct{}
	// proved is when the last proof was sought that succeeded.
	proved  time.Time
	waiting int
	// wanted is when a request last asked.
	wanted  time.Time
	looking bool
	shut    bool
	gone    bool // see dismiss
}

// holdConfig says how one shard's requests are held.
type holdConfig struct {
	most  int           // requests held at once
	limit time.Duration // from the start of the outage
	pause time.Duration // between two looks for a writable node
	// prove looks for a writable node, and returns soon after ctx is done.
	prove func(ctx context.Context) bool
	log   *slog.Logger // names the shard
}

// newHold returns a hold without an outage.
func newHold(cfg holdConfig) *hold {
	ctx, stop := context.WithCancel(context.Background())
	return &hold{holdConfig: cfg, ctx: ctx, stop: stop, born: time.Now()}
}

// wait returns nil when a node has proved writable after failed, which is when
// the caller's own failure was first to be seen, or when news is closed. since
// is when the outage began as far as the caller knows. The error is
// ErrHoldOver, ErrHoldFull, ErrClosed, or the cause for which ctx ended.
func (h *hold) wait(ctx context.Context, since, failed time.Time, news <-chan struct{}) error {
	proof, left, err := h.enter(since, failed)
	if proof == nil {
		return err
	}
	defer h.leave()
	over := time.NewTimer(left)
	defer over.Stop()
	select {
	case <-proof:
		return nil
	case <-news:
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-h.ctx.Done():
		err = ErrClosed
	case <-over.C:
		err = ErrHoldOver
	}
	select {
	case <-proof: // in the same moment: the proof counts
		return nil
	default:
		return err
	}
}

// enter joins those who wait, and returns what ends the wait and how long it may
// take. Without a channel there is nothing to wait for: the shard has proved
// writable meanwhile, or the error says why not.
func (h *hold) enter(since, failed time.Time) (proof <-chan struct{}, left time.Duration, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.wanted = now
	switch {
	case h.shut:
		return nil, 0, ErrClosed
	case h.gone || h.proved.After(failed):
		return nil, 0, nil
	}
	h.beginLocked(since)
	h.lookLocked()
	left = h.began.Add(h.limit).Sub(now)
	switch {
	case left <= 0:
		return nil, 0, ErrHoldOver
	case h.waiting >= h.most:
		return nil, 0, ErrHoldFull
	}
	h.waiting++
	return h.proof, left, nil
}

func (h *hold) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting--
}

// beginLocked begins an outage, unless there is one. None began before the last
// lease was lent: since may be by a clock that is behind.
func (h *hold) beginLocked(since time.Time) {
	if h.began.IsZero() {
		if lent := h.lent.Load(); lent > 0 && since.Before(h.born.Add(time.Duration(lent))) {
			since = h.born.Add(time.Duration(lent))
		}
		h.began, h.proof = since, make(chan struct{})
		h.outage.Store(true)
	}
}

// end takes a proof that a node is writable, which was sought at the time
// sought. One from before the outage says nothing about it.
func (h *hold) end(sought time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if sought.Before(h.began) {
		return
	}
	h.proved = sought
	h.endLocked()
}

func (h *hold) endLocked() {
	if !h.began.IsZero() {
		h.began = time.Time{}
		h.outage.Store(false)
		close(h.proof)
	}
}

// dismiss lets everybody go who waits or will: the shard has other nodes now,
// or was removed, and they have to look again.
func (h *hold) dismiss() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone = true
	h.endLocked()
}

// served takes a lease whose search began at the time sought for a proof. It
// costs two atomic operations while there is no outage.
func (h *hold) served(sought time.Time) {
	h.lent.Store(int64(sought.Sub(h.born)))
	if h.outage.Load() {
		h.end(sought)
	}
}

// over reports that an outage has lasted longer than requests wait, and notes
// that one would have.
func (h *hold) over() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.began.IsZero() || time.Since(h.began) < h.limit {
		return false
	}
	h.wanted = time.Now()
	h.lookLocked()
	return true
}

// held is how many requests wait, and since when the shard is out.
func (h *hold) held() (waiting int, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiting, h.began
}

// lookLocked has somebody look for a writable node.
func (h *hold) lookLocked() {
	if !h.looking && !h.shut {
		h.looking = true
		h.looks.Go(h.look)
	}
}

// look seeks a proof for as long as somebody cares.
func (h *hold) look() {
	start := time.Now()
	h.log.Warn("no writable node: requests are held")
	for h.cares() {
		sought := time.Now()
		if !h.prove(h.ctx) {
			sleep(h.ctx, h.pause)
			continue
		}
		waiting, _ := h.held()
		h.end(sought)
		h.log.Info("a node is writable: requests go on", "held", waiting, "after", time.Since(start))
	}
}

// cares reports whether to look again; if not, the look has ended.
func (h *hold) cares() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looking = !h.shut && !h.began.IsZero() && (h.waiting > 0 || time.Since(h.wanted) < holdLinger)
	return h.looking
}

// shutDown answers everybody who waits or will, with ErrClosed. It is
// idempotent.
func (h *hold) shutDown() {
	h.mu.Lock()
	h.shut = true
	h.mu.Unlock()
	h.stop()
}

// close is shutDown, and returns when nobody looks any more.
func (h *hold) close() {
	h.shutDown()
	h.looks.Wait()
}
