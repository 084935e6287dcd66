package shardrouter

import (
	"context"
	"errors"
)

// errOvertaken: the fleet writes to another node by now, or may. What this one was
// sent before may have run there, where nobody looks for it.
var errOvertaken = errors.New("another node has become the writer, or may have")

// guarded reports whether the connection leads to a node that may be overtaken,
// and then still commit what is lost. A member of a synchronous cluster commits
// nothing without the others: what it has, the new writer has.
func (c *serverConn) guarded() bool {
	if c.pool == nil || c.pool.succession == nil {
		return false
	}
	member := c.node.member.Load()
	return member == nil || *member == memberOfNone
}

// overtaken reports whether the fleet writes to another node than the connection
// leads to, or may do so by now. It waits for a word from Redis, if that is late,
// but not beyond done.
func (c *serverConn) overtaken(done <-chan struct{}) bool {
	if !c.guarded() {
		return false
	}
	if c.pool.retired.Load() {
		c.pool.succession.follow() // nobody tells a retired pool
	}
	return c.stale() || !c.pool.succession.awaitMandate(done, c.writer)
}

// mayRun refuses a statement that writes to a node that was overtaken, and one that
// would end the transaction in which it stands.
func (c *serverConn) mayRun(ctx context.Context, t traits) error {
	if err := c.free(t); err != nil {
		return err
	}
	if !t.reads && c.overtaken(ctx.Done()) {
		return c.refuse(ctx)
	}
	if c.tx.open && t.breaks {
		return ErrImplicitCommit
	}
	return nil
}

// refuse is the error of what is not sent to a node that was overtaken. The
// connection is of no more use for writing. Where the caller's time ended before
// that was known, it says so, as the driver does.
func (c *serverConn) refuse(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		c.ending.expire()
		return err
	}
	c.lost.Store(true)
	c.spent = true
	return c.unrun(errOvertaken)
}

// vouch is asked for every answer that says that a statement succeeded. A node
// that was overtaken while the statement ran cannot be believed that a write
// stays. Within a transaction the answer to its COMMIT decides.
func (c *serverConn) vouch(ctx context.Context, t traits) error {
	if !t.reads && !c.tx.open && c.overtaken(ctx.Done()) {
		return errOvertaken
	}
	return nil
}
