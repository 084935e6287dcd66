package shardrouter

import (
	"context"
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

// mark comes before a statement that may commit.
func (c *serverConn) mark(ctx context.Context) error {
	if !c.tx.opaque {
		return nil
	}
	_, err := c.mysqlConn.ExecContext(ctx, setMark, nil)
	c.tx.marked = err == nil
	return err
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
	_, gone := c.mysqlConn.ExecContext(ctx, releaseMark, nil)
	switch {
	case gone == nil:
		c.stays.Store(c.tx.stayed)
	case hasNumber(gone, erNoSuchFunction): // which is also the number for savepoints
		c.tx.ended = true
		gone = c.statementError(Unknown, ErrImplicitCommit)
	}
	return errors.Join(err, gone)
}
