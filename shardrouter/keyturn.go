package shardrouter

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

// A call whose key is under way waits in the database, on the lock of the outcome
// row, and for that long has a place in the pool. One who repeats a slow key again
// and again would so come to have all of them. So of one key only few get that far
// on a shard: the one that runs, and one that waits for it.
const (
	// keyTurns are the calls with one key that may use the shard at once.
	keyTurns = 2
	// keyCrowd bounds those and the ones that wait for a turn; the next is
	// refused at once.
	keyCrowd = 8
	// turnWait bounds the wait for a turn. Calls with a key that has been
	// committed take a moment each, and all get their answer.
	turnWait = time.Second
)

// keyQueues are the calls with keys that use one shard. Safe for use by several
// goroutines.
type keyQueues struct {
	mu sync.Mutex // guards of and the count of each
	of map[[sha256.Size]byte]*keyQueue
}

// keyQueue is the calls with one key.
type keyQueue struct {
	turns chan struct{} // holds one token for each that has its turn
	crowd int
}

// enter waits for a turn of the key, which ends with leave. ok is false when there
// is none in time.
func (q *keyQueues) enter(ctx context.Context, id [sha256.Size]byte) (leave func(), ok bool) {
	k := q.join(id)
	if k == nil {
		return nil, false
	}
	late := time.NewTimer(turnWait)
	defer late.Stop()
	select {
	case k.turns <- struct{}{}:
		return func() { <-k.turns; q.part(id, k) }, true
	case <-late.C:
	case <-ctx.Done():
	}
	q.part(id, k)
	return nil, false
}

// join counts one in; nil when there are too many.
func (q *keyQueues) join(id [sha256.Size]byte) *keyQueue {
	q.mu.Lock()
	defer q.mu.Unlock()
	k := q.of[id]
	if k == nil {
		k = &keyQueue{turns: make(chan struct{}, keyTurns)}
		if q.of == nil {
			q.of = make(map[[sha256.Size]byte]*keyQueue)
		}
		q.of[id] = k
	}
	if k.crowd == keyCrowd {
		return nil
	}
	k.crowd++
	return k
}

func (q *keyQueues) part(id [sha256.Size]byte, k *keyQueue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k.crowd--; k.crowd == 0 {
		delete(q.of, id)
	}
}

// takeTurn waits until a call with this key may use the shard; without a key that is
// at once.
func (l *Lease) takeTurn(ctx context.Context, opts TxOptions) (leave func(), err error) {
	if opts.Key == "" {
		return func() {}, nil
	}
	leave, ok := l.pool.keys.enter(ctx, keyID(l.pool.shard.Load().Group, opts.Scope, opts.Key))
	switch {
	case ok:
		return leave, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, ErrKeyInProgress
}
