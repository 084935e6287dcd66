package shardrouter

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// leakGrace is how long a release waits for rows and transactions that the
// holder left open to be closed by the end of their context.
const leakGrace = 250 * time.Millisecond

// Lease is the loan of one connection, for one goroutine at a time; Release
// may be called from any.
type Lease struct {
	pool     *pool
	conn     *sql.Conn
	server   *serverConn
	place    *ramp   // see bulkhead.enter
	holder   *holder // nil when the context was not tracked
	detour   bool    // set before the lease is handed out, as returned is
	returned bool
	began    int64 // the count of the group's passages when it was asked for
	released atomic.Bool
	wrote    atomic.Bool // see OnlyRead
	ending   ending      // see Lost
}

func newLease(p *pool, conn *sql.Conn) (*Lease, error) {
	l := &Lease{pool: p, conn: conn}
	err := conn.Raw(func(dc any) error {
		server, ok := dc.(*serverConn)
		if !ok {
			return errForeignDriver
		}
		l.server = server
		server.wrote, server.ending = &l.wrote, &l.ending
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return l, nil
}

// Conn returns the connection. It is valid until Release. When a probe finds
// the shard down before that, what runs on the connection fails as if the
// server had closed it.
func (l *Lease) Conn() *sql.Conn { return l.conn }

// Shard names the shard of the connection.
func (l *Lease) Shard() string { return l.pool.name }

// Detour reports that the lease is of another shard than its route names for a
// reason that may be this instance's alone: it cannot reach the route's shard
// while a witness can, the shard has answered a probe again meanwhile, or only
// other instances know it. Serve the request, and leave the route as it is.
func (l *Lease) Detour() bool { return l.detour }

// Returned reports that the lease is of the route's home, to which the session
// may go back now. Store that as Route.Returned says before you use the lease;
// if it cannot be stored, release it and ask again with a route that is Settled.
func (l *Lease) Returned() bool { return l.returned }

// Node is the address of the server, host:port. It is for logs, not for
// clients.
func (l *Lease) Node() string { return l.server.node.addr }

// Alive reports whether the connection can still be used, as far as this side
// knows: a statement whose context ended, and a shard that was found down, end
// it.
func (l *Lease) Alive() bool { return !l.released.Load() && !l.server.wire.gone() }

// OnlyRead reports whether everything that was run on the lease so far provably
// changed nothing in the database: single statements, SELECT and SHOW, of tables
// and of built-in functions that only compute. A prepared statement counts by
// its text, and a transaction by its statements. What a view calls cannot be
// seen, so a view over a stored function that writes is taken for a read.
func (l *Lease) OnlyRead() bool { return !l.wrote.Load() }

// Release gives the connection back. It is idempotent. Rows or a transaction
// that the holder left open are reported as a leak; their connection is cut
// and never lent again. Release waits at most a quarter of a second for them, and
// twice that for what the end of its own context closes.
func (l *Lease) Release() { l.ReleaseAfter(context.Background(), func() {}) }

// ReleaseAfter is Release for a holder whose statements run under ctx, which
// cancel ends. cancel is called after the look for leaks and before the
// connection goes back, so that database/sql closes what is open. What is open
// because ctx ended before, as when a client leaves, is no leak.
func (l *Lease) ReleaseAfter(ctx context.Context, cancel context.CancelFunc) {
	first := l.released.CompareAndSwap(false, true)
	leaked := first && ctx.Err() == nil && l.leftOpen()
	cancel()
	if !first {
		return
	}
	l.pool.heedDrain()
	if stuck := !l.giveBack(); leaked || stuck {
		l.reportLeak()
	}
	l.settleUp()
	l.holder.remove(l)
	l.pool.back(l)
}

// leftOpen reports whether the holder has left something open. What ends with a
// context of its own, such as one with a timeout, database/sql closes beside it.
func (l *Lease) leftOpen() bool {
	return l.server.uses.any() && (!l.server.ends() || !l.comesToRest())
}

// comesToRest waits until nothing is under way on a connection on which all is being
// ended. A server that takes its time over that is left to it.
func (l *Lease) comesToRest() bool {
	if waitFor(l.server.uses.over(), leakGrace) {
		return true
	}
	l.server.wire.cut()
	return waitFor(l.server.uses.over(), leakGrace)
}

// giveBack closes the sql.Conn. Its Close would block for as long as anything
// is open on it, so a connection that stays in use is cut and left to be
// closed by its last user; giveBack then returns false.
func (l *Lease) giveBack() bool {
	if l.server.uses.any() && !waitFor(l.server.uses.over(), leakGrace) {
		l.abandon()
		return false
	}
	// ErrConnDone and errors of a dead connection: it is gone either way.
	_ = l.conn.Close()
	return true
}

// abandon cuts a connection that somebody still uses, and ends what the driver
// runs for it as soon as no statement is under way, which after the cut is
// soon. sql.DB lets go of it when the last rows and transaction are closed.
func (l *Lease) abandon() {
	l.server.wire.cut()
	go func() {
		_ = l.conn.Raw(func(any) error { return l.server.Close() })
	}()
	l.server.uses.whenOver(func() { _ = l.conn.Close() })
}

func (l *Lease) reportLeak() {
	l.pool.counter.leaks.Add(1)
	l.pool.cfg.Logger.Warn("rows, a statement or a transaction left open when the connection was given back",
		"shard", l.Shard(), "node", l.Node())
	if f := l.pool.cfg.Observer.Leaked; f != nil {
		f(l.Shard())
	}
}

func waitFor(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// holder remembers the leases taken under one context.
type holder struct {
	mu     sync.Mutex
	leases []*Lease
	// wrote: something that is not provably a read ran on a released lease.
	wrote bool
}

type holderKey struct{}

// Track returns a context that remembers the leases taken under it. A second
// lease of the same shard, taken while the first is out and no connection is
// free, then fails at once with ErrNestedLease instead of waiting for itself.
// A context that is tracked already is returned as it is.
func Track(ctx context.Context) context.Context {
	if holderOf(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, holderKey{}, &holder{})
}

func holderOf(ctx context.Context) *holder {
	h, _ := ctx.Value(holderKey{}).(*holder)
	return h
}

// holds reports whether a lease of p is out under this context.
func (h *holder) holds(p *pool) bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.leases {
		if l.pool == p {
			return true
		}
	}
	return false
}

func (h *holder) add(l *Lease) {
	l.holder = h
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases = append(h.leases, l)
}

func (h *holder) remove(l *Lease) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrote = h.wrote || !l.OnlyRead()
	for i, other := range h.leases {
		if other == l {
			h.leases = append(h.leases[:i], h.leases[i+1:]...)
			return
		}
	}
}
