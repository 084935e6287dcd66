package shardrouter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

// answered reports whether a statement that ended with err was answered.
func answered(err error) bool {
	if err == nil {
		return true
	}
	var me *mysql.MySQLError
	return errors.As(err, &me)
}

// tell is deferred around what runs a statement, and has the error say how far
// it got since m.
func (c *serverConn) tell(err *error, query string, m mark) {
	if *err != nil {
		*err = c.typed(*err, query, c.wire.since(m))
	}
}

// typed returns err, or a StatementError of it if it leaves anything open.
func (c *serverConn) typed(err error, query string, to reach) error {
	if _, told := errors.AsType[*StatementError](err); told || c.pool == nil {
		return err
	}
	r := ranAs{query: query, reach: to, inTx: c.tx.open, stays: c.stays.Load(), multi: c.node.multi}
	v := c.pool.classify(err, occasion{phase: phaseStatement, readOnlyTx: c.tx.readOnly})
	if p, ok := progressOf(r, err, v); ok {
		return c.statementError(p, err)
	}
	return err
}

func (c *serverConn) statementError(p Progress, err error) error {
	return &StatementError{Shard: c.pool.name, Node: c.node.addr, Progress: p, Err: c.explained(err)}
}

// errLate tells a slow statement from a server that went, for whoever reads the
// log: the driver has the same error for both.
var errLate = errors.New("no answer within the read timeout (SHARD_READ_TIMEOUT, or readTimeout in the DSN)")

// explained returns err with why this side gave the connection up, if it did.
func (c *serverConn) explained(err error) error {
	if c.isLate() {
		return fmt.Errorf("%w: %w", err, errLate)
	}
	return err
}

// isLate reports whether the driver gave the connection up for want of an answer.
func (c *serverConn) isLate() bool { return c.wire != nil && c.wire.late.Load() }

// tellUnrun is deferred around what runs no statement.
func (c *serverConn) tellUnrun(err *error) {
	if *err != nil && !isContextError(*err) && connectionGone(*err) {
		*err = c.unrun(*err)
	}
}

// unrun is the error of what was not run because the connection went.
func (c *serverConn) unrun(err error) error {
	if c.pool == nil {
		return err
	}
	switch {
	case !c.tx.open:
		return c.statementError(NotSent, err)
	case c.stays.Load():
		return c.statementError(Unknown, err)
	}
	return c.statementError(RolledBack, err)
}

// broken gives the connection up after a panic of the driver.
func (c *serverConn) broken(p any) error {
	c.wire.cut()
	c.lost.Store(true)
	c.ending.lose()
	return fmt.Errorf("%w: %v", errProtocol, p)
}

// own runs a statement of the library's own, below what remembers those of the
// connection's holder.
func (c *serverConn) own(ctx context.Context, statement string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = c.broken(p)
		}
	}()
	_, err = c.mysqlConn.ExecContext(ctx, statement, nil)
	return err
}

// note remembers what an error means for the transaction under way, and raises
// a suspicion if it speaks against the server.
func (c *serverConn) note(err error) {
	if err == nil {
		return
	}
	if isContextError(err) {
		c.ending.expire()
		return
	}
	if c.pool == nil {
		return
	}
	v := c.pool.classify(err, occasion{phase: phaseStatement, readOnlyTx: c.tx.readOnly})
	switch {
	case v == VerdictLost, v == VerdictReadOnly:
		c.lost.Store(true)
		c.spent = true
		if v == VerdictLost {
			c.ending.lose()
		}
		c.pool.suspectFor(v, c.explained(err))
	case !c.tx.open:
	case v == VerdictRolledBack:
		c.rolledBack.Store(true)
		c.tx.ended = true
	case c.rolledBackByTimeout(err):
		c.tx.ended = true
	}
}

// rolledBackByTimeout reports whether err is a lock-wait timeout and the server
// is set up to roll the whole transaction back then, not the statement alone.
// Where it does not say, it is taken to be.
func (c *serverConn) rolledBackByTimeout(err error) bool {
	var me *mysql.MySQLError
	if !errors.As(err, &me) || me.Number != erLockWaitTimeout {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	row, err := queryRow(ctx, c.mysqlConn, "SELECT @@global.innodb_rollback_on_timeout", 1)
	return err != nil || isOn(row[0])
}
