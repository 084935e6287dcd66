package shardrouter

import "errors"

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
// leads to, or may do so by now. It waits for a word from Redis, if that is late.
func (c *serverConn) overtaken() bool {
	if !c.guarded() {
		return false
	}
	if c.pool.retired.Load() {
		c.pool.succession.follow() // nobody tells a retired pool
	}
	return c.stale() || !c.pool.succession.awaitMandate(c.writer)
}

// mayRun refuses a statement that writes to a node that was overtaken, and one that
// would end the transaction in which it stands.
func (c *serverConn) mayRun(t traits) error {
	if err := c.free(t); err != nil {
		return err
	}
	if !t.reads && c.overtaken() {
		return c.refuse()
	}
	if c.tx.open && t.breaks {
		return ErrImplicitCommit
	}
	return nil
}

// refuse is the error of what is not sent to a node that was overtaken. The
// connection is of no more use for writing.
func (c *serverConn) refuse() error {
	c.lost.Store(true)
	c.spent = true
	return c.unrun(errOvertaken)
}

// vouch is asked for every answer that says that a statement succeeded. A node
// that was overtaken while the statement ran cannot be believed that a write
// stays. Within a transaction the answer to its COMMIT decides.
func (c *serverConn) vouch(t traits) error {
	if !t.reads && !c.tx.open && c.overtaken() {
		return errOvertaken
	}
	return nil
}
