package shardrouter

import (
	"context"
	"sync/atomic"
)

// ending is what is known of how the connection of a lease came to its end, if
// it did. A nil ending, that of a connection which is not lent, takes no note.
// Its methods are safe for any goroutine.
type ending struct {
	lost    atomic.Bool // a statement met the end of the connection
	expired atomic.Bool // the context of a statement ended
}

func (e *ending) lose() {
	if e != nil {
		e.lost.Store(true)
	}
}

func (e *ending) expire() {
	if e != nil {
		e.expired.Store(true)
	}
}

// Lost reports whether a statement on the lease failed because the server, the
// network or a probe that found the shard down ended the connection. It is
// false when the context of a statement ended as well, since the driver then
// closes the connection by itself, which is no evidence of the server.
func (l *Lease) Lost() bool { return l.ending.lost.Load() && !l.ending.expired.Load() }

// OnlyRead reports whether [Lease.OnlyRead] holds for all leases taken under
// ctx, released or not. It is false when ctx is not tracked, since then nothing
// is known of them.
func OnlyRead(ctx context.Context) bool { return holderOf(ctx).onlyRead() }

func (h *holder) onlyRead() bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.leases {
		if !l.OnlyRead() {
			return false
		}
	}
	return !h.wrote
}
