package shardrouter

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// ghostTimeout bounds the end of one ghost.
	ghostTimeout = 2 * time.Second
	// lateTimeout bounds the same for a caller whose time is over, and who may still
	// wait for the error.
	lateTimeout = 250 * time.Millisecond
)

// ghost is a thread of a server whose connection this side has lost. A server
// that has not noticed keeps the locks of its transaction, and whoever wants
// the same rows waits for them until it does.
type ghost struct {
	node *node
	peer peer
}

// lose gives a lease back whose connection is of no more use, and remembers its
// ghost. The connection is cut, or it would be lent again and end as a ghost in
// the hands of its next holder. When nobody may come to lay the ghost later, that
// is done before.
func (t *transaction) lose(ctx context.Context, l *Lease, lay bool) {
	if !l.released.Load() {
		l.server.wire.cut()
		if l.server.peer.thread != 0 {
			t.ghosts = append(t.ghosts, ghost{l.server.node, l.server.peer})
		}
		if lay {
			t.layInPlaceOf(ctx, l)
		}
	}
	t.src.Lost(l)
}

// isCutInside reports whether the connection was closed in the midst of a
// transaction that its server is to roll back.
func (l *Lease) isCutInside() bool { return !l.Alive() && !l.server.stays.Load() }

// layGhosts ends the threads on the lease's node that the transaction has left
// behind. One that cannot be ended, because the server was restarted or does
// not answer, is left to the server's own timeouts; so are those behind a proxy
// that speaks MySQL, whose numbers are not the server's.
func (t *transaction) layGhosts(ctx context.Context, l *Lease) {
	var others []ghost
	for _, g := range t.ghosts {
		if g.node != l.server.node {
			others = append(others, g)
			continue
		}
		err := l.lay(ctx, g)
		switch {
		case err != nil && ctx.Err() != nil: // see layInPlaceOf
			others = append(others, g)
		case err != nil:
			l.pool.cfg.Logger.Debug("the thread of a lost connection is left to its server",
				"shard", l.Shard(), "node", l.Node(), "thread", g.peer.thread, "error", err)
		}
	}
	t.ghosts = others
}

// layInPlaceOf ends the ghosts of a transaction that may never get another lease,
// since its context has ended or others wait for one as well. Of the close of the
// connection a server that runs a statement, or has it wait for a lock, takes no
// notice: one who asks and leaves again and again would come to have all of its
// connections, and a repeat would find the key of a request under way that nobody
// waits for. The lease keeps its place in the pool meanwhile, for which others may
// be waiting, on the same lock.
func (t *transaction) layInPlaceOf(ctx context.Context, l *Lease) {
	if len(t.ghosts) == 0 {
		return
	}
	limit := ghostTimeout
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		limit = lateTimeout
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	other, err := l.pool.connect(ctx, l.server.era, limit)
	if err != nil {
		return
	}
	t.layGhosts(ctx, other)
	_ = other.conn.Close()
}

func (l *Lease) lay(ctx context.Context, g ghost) error {
	ctx, cancel := context.WithTimeout(ctx, ghostTimeout)
	defer cancel()
	return l.conn.Raw(func(any) error { return l.server.endThread(ctx, g.peer) })
}

// endThread ends another thread of the server, if that is still in the life in
// which it gave the thread its number.
func (c *serverConn) endThread(ctx context.Context, p peer) error {
	if c.peer.life != p.life {
		return fmt.Errorf("another server, or another life of it: %s, not %s", c.peer.life, p.life)
	}
	err := c.own(ctx, fmt.Sprintf("KILL CONNECTION %d", p.thread))
	if hasNumber(err, erNoSuchThread) { // it has noticed
		return nil
	}
	return err
}
