package sessionstore

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxDebts bounds the memory that routes take which Redis could not store:
	// some 4 MB.
	maxDebts = 10_000
	// debtLife is how long such a route is kept. Later a new rotation decides
	// anew.
	debtLife = 5 * time.Minute
	// debtPause is the time between two attempts to store what is kept.
	debtPause = 500 * time.Millisecond
	// debtFailures ends an attempt: Redis still cannot.
	debtFailures = 3
)

// debt is a route that a request decided on and Redis could not store.
type debt struct {
	base      Route // the stored route that it follows
	baseNonce string
	next      Route
	nonce     string
	expires   time.Time
}

// follows reports whether d was decided on r, as nonce's writer stored it.
func (d debt) follows(r Route, nonce string) bool {
	return d.base == r && d.baseNonce == nonce
}

// debts keeps routes until Redis can store them, by compare-and-set on the
// route that each followed, so that a newer one is never overwritten. It runs
// one goroutine, and only while something is owed. It is safe for use by
// several goroutines.
type debts struct {
	// claim stores a debt; errors mean that Redis could not.
	claim  func(ctx context.Context, key string, d debt) (outcome, error)
	logger *slog.Logger
	// ctx ends with close.
	ctx  context.Context
	stop context.CancelFunc

	owed atomic.Int32 // len(byKey)

	mu     sync.Mutex // guards the rest
	byKey  map[string]debt
	closed bool
	// settled is closed when the goroutine ends; nil when there is none.
	settled chan struct{}
}

func newDebts(claim func(context.Context, string, debt) (outcome, error), logger *slog.Logger) *debts {
	ctx, stop := context.WithCancel(context.Background())
	return &debts{claim: claim, logger: logger, ctx: ctx, stop: stop, byKey: map[string]debt{}}
}

// owe keeps d for the session under key. False: there is no room, or the
// manager is closed.
func (ds *debts) owe(key string, d debt) bool {
	d.expires = time.Now().Add(debtLife)
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if _, known := ds.byKey[key]; ds.closed || !known && len(ds.byKey) >= maxDebts {
		return false
	}
	ds.byKey[key] = d
	ds.owed.Store(int32(len(ds.byKey)))
	if ds.settled == nil {
		ds.settled = make(chan struct{})
		go ds.settle(ds.settled)
	}
	return true
}

// of returns the route that is owed to the session under key, which stands at
// r; the zero route if there is none.
func (ds *debts) of(key string, r Route, nonce string) Route {
	if ds.owed.Load() == 0 {
		return Route{}
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if d, ok := ds.byKey[key]; ok && d.follows(r, nonce) {
		return d.next
	}
	return Route{}
}

// forget drops what is owed to the session under key.
func (ds *debts) forget(key string) {
	if ds.owed.Load() == 0 {
		return
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.dropLocked(key)
}

func (ds *debts) dropLocked(key string) {
	delete(ds.byKey, key)
	ds.owed.Store(int32(len(ds.byKey)))
}

// settle attempts to store what is owed until nothing is, or until close.
func (ds *debts) settle(settled chan struct{}) {
	defer close(settled)
	tick := time.NewTicker(debtPause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			ds.attempt()
		case <-ds.ctx.Done():
		}
		if ds.over() {
			return
		}
	}
}

// over reports whether the goroutine has nothing more to do; the next debt then
// starts another.
func (ds *debts) over() bool {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if len(ds.byKey) > 0 && !ds.closed {
		return false
	}
	ds.settled = nil
	return true
}

// attempt stores what it can. Some failures end it, as Redis seems to be unable
// still; a server that is not even asked, one of a cluster perhaps, does not.
func (ds *debts) attempt() {
	failures := 0
	for key, d := range ds.list() {
		if failures == debtFailures || ds.ctx.Err() != nil {
			return
		}
		_, err := ds.claim(ds.ctx, key, d)
		switch {
		case errors.Is(err, ErrUnavailable):
		case err != nil:
			failures++
		default:
			ds.paid(key, d) // stored, or there is no need any more
		}
	}
}

// list returns what is owed, and drops what has been for too long.
func (ds *debts) list() map[string]debt {
	now := time.Now()
	ds.mu.Lock()
	owed, expired := make(map[string]debt, len(ds.byKey)), 0
	for key, d := range ds.byKey {
		if now.After(d.expires) {
			ds.dropLocked(key)
			expired++
			continue
		}
		owed[key] = d
	}
	ds.mu.Unlock()
	if expired > 0 {
		ds.logger.Warn("routes given up that Redis could not store", "sessions", expired)
	}
	return owed
}

// paid drops d, unless another request owes a newer route by now.
func (ds *debts) paid(key string, d debt) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.byKey[key].nonce == d.nonce {
		ds.dropLocked(key)
	}
}

// close gives up what is owed and waits for the goroutine to end.
func (ds *debts) close() {
	ds.stop()
	ds.mu.Lock()
	ds.closed = true
	clear(ds.byKey)
	ds.owed.Store(0)
	settled := ds.settled
	ds.mu.Unlock()
	if settled != nil {
		<-settled
	}
}
