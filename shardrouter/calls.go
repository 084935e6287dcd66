package shardrouter

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"
)

// Within a transaction a statement such as CALL, of which nobody can tell whether
// it commits, stands between two statements of the library's own. A COMMIT or
// ROLLBACK takes every savepoint with it, also when a new transaction follows:
//
//	SAVEPOINT ─► CALL ─► RELEASE ──ok──────────────► the transaction goes on
//	                        │ there is no such savepoint
//	                        ▼
//	                     the CALL has ended it: its error says so, and the
//	                     transaction's later statements are refused
const (
	setMark     = "SAVEPOINT shardhop_call"
	releaseMark = "RELEASE SAVEPOINT shardhop_call"
	// releaseTimeout is for the look at the mark, which a statement's own context
	// shall not cut short: what comes later hangs on it.
	releaseTimeout = time.Second
)

// mark comes before a statement that may commit. Where it fails, that statement is
// not sent, and is in no doubt.
func (c *serverConn) mark(ctx context.Context) (err error) {
	if !c.tx.opaque {
		return nil
	}
	defer c.tell(&err, setMark, c.wire.mark())
	if err = c.own(ctx, setMark); err != nil {
		c.stays.Store(c.tx.stayed)
	}
	c.tx.marked = err == nil
	return err
}

// skipped takes back that a statement was sent, if the driver has not: its
// parameters are to be sent apart from it, and database/sql prepares it.
func (c *serverConn) skipped(err error) {
	if c.tx.opaque && errors.Is(err, driver.ErrSkip) {
		c.tx.marked = false
		c.stays.Store(c.tx.stayed)
	}
}

// stillIn comes after a statement that ended with err, and returns that, or that
// the transaction in which it stood is over. A server that did not answer, or has
// ended the transaction by itself, is not asked.
func (c *serverConn) stillIn(ctx context.Context, err error) error {
	if !c.tx.marked || !answered(err) {
		return err
	}
	c.tx.marked = false
	if err != nil && c.pool.classify(err, occasion{phase: phaseStatement}) != VerdictStatement {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	gone := c.own(ctx, releaseMark)
	switch {
	case gone == nil:
		c.stays.Store(c.tx.stayed)
	case hasNumber(gone, erNoSuchFunction): // which is also the number for savepoints
		c.tx.ended = true
		gone = c.statementError(Unknown, ErrImplicitCommit)
	}
	return errors.Join(err, gone)
}
