package shardrouter

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"time"
)

// pingAfter is how long a pooled connection may have been idle before it is
// pinged on its way to a lease.
const pingAfter = 500 * time.Millisecond

// mysqlConn lists what github.com/go-sql-driver/mysql implements and
// database/sql uses.
type mysqlConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

var _ mysqlConn = (*serverConn)(nil)

// serverConn is one connection to one node, as database/sql sees it. Beyond
// the driver's own connection it knows its wire, its era, what the holder has
// left open, and whether the server has ended the present transaction.
// database/sql calls it from one goroutine at a time.
type serverConn struct {
	mysqlConn
	wire *wire // nil: see wire
	era  *era
	node string
	// untie ends the tie to the era; nil for a connection of a probe.
	untie func() bool

	uses uses // safe for any goroutine
	// lost: in the present or last transaction, the connection went, or the
	// node refused to go on, before COMMIT was sent. Safe for any goroutine.
	lost atomic.Bool

	lastUsed  time.Time
	pingAfter time.Duration
	tx        txState
	rows      int  // results that are open
	tainted   bool // a statement may have left something behind; see leavesResidue
	discarded *atomic.Uint64
}

// txState is what is known of the transaction under way.
type txState struct {
	open     bool
	readOnly bool // begun as READ ONLY
	// ended: the server has rolled it back by itself, and what follows would
	// run outside of it.
	ended bool
}

func (c *serverConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.admit(query); err != nil {
		return nil, err
	}
	c.uses.begin()
	defer c.uses.end()
	res, err := c.mysqlConn.ExecContext(ctx, query, args)
	return res, c.note(err)
}

func (c *serverConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.admit(query); err != nil {
		return nil, err
	}
	c.uses.begin()
	rows, err := c.mysqlConn.QueryContext(ctx, query, args)
	return c.wrapRows(rows, c.note(err))
}

// admit refuses a statement that must not be sent now, and remembers one that
// may leave something behind.
func (c *serverConn) admit(query string) error {
	if err := c.free(); err != nil {
		return err
	}
	c.tainted = c.tainted || leavesResidue(query)
	return nil
}

// free refuses what would run outside of an ended transaction, or in the middle
// of an open result, for which the driver knows only an error that makes
// database/sql close the connection under the result and wait for it.
func (c *serverConn) free() error {
	switch {
	case c.tx.ended:
		return ErrTxEnded
	case c.rows > 0:
		return ErrRowsOpen
	}
	return nil
}

func (c *serverConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if err := c.admit(query); err != nil {
		return nil, err
	}
	c.uses.begin()
	defer c.uses.end()
	inner, err := c.mysqlConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, c.note(err)
	}
	stmt, ok := inner.(mysqlStmt)
	if !ok {
		return nil, errForeignDriver
	}
	return &serverStmt{mysqlStmt: stmt, conn: c}, nil
}

func (c *serverConn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

func (c *serverConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if err := c.free(); err != nil {
		return nil, err
	}
	c.uses.begin()
	c.lost.Store(false)
	tx, err := c.mysqlConn.BeginTx(ctx, opts)
	if err != nil {
		c.uses.end()
		return nil, err
	}
	c.tx = txState{open: true, readOnly: opts.ReadOnly}
	return &serverTx{tx: tx, conn: c}, nil
}

func (c *serverConn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// Ping fails while rows are open, for the reason that free tells.
func (c *serverConn) Ping(ctx context.Context) error {
	if err := c.free(); err != nil {
		return err
	}
	c.uses.begin()
	defer c.uses.end()
	return c.mysqlConn.Ping(ctx)
}

// ResetSession is called before a pooled connection is lent again. Everything
// that makes it unfit is ErrBadConn, since database/sql ignores other errors
// and would hand the connection out all the same.
func (c *serverConn) ResetSession(ctx context.Context) error {
	if !c.fit() || c.mysqlConn.ResetSession(ctx) != nil {
		return driver.ErrBadConn
	}
	if time.Since(c.lastUsed) < c.pingAfter {
		return nil
	}
	if c.Ping(ctx) != nil {
		return driver.ErrBadConn
	}
	return nil
}

// IsValid is called when a connection comes back to the pool.
func (c *serverConn) IsValid() bool {
	c.lastUsed = time.Now()
	if c.tainted {
		c.discarded.Add(1)
		return false
	}
	return c.fit() && c.mysqlConn.IsValid()
}

func (c *serverConn) Close() error {
	if c.untie != nil {
		c.untie()
	}
	return c.mysqlConn.Close()
}

func (c *serverConn) fit() bool {
	return !c.era.ended() && !c.wire.gone() && !c.tx.open
}

// note remembers what an error means for the transaction under way.
func (c *serverConn) note(err error) error {
	if err == nil || !c.tx.open || isContextError(err) {
		return err
	}
	switch classify(err, occasion{phase: phaseStatement, readOnlyTx: c.tx.readOnly}) {
	case VerdictRolledBack:
		c.tx.ended = true
	case VerdictLost, VerdictReadOnly:
		c.lost.Store(true)
	}
	return err
}

// isContextError reports whether a statement ended because its own context did,
// which says nothing about the server.
func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// serverTx is a transaction on a serverConn.
type serverTx struct {
	tx   driver.Tx
	conn *serverConn
}

// Commit sends COMMIT, unless the server has ended the transaction already: a
// COMMIT would then confirm nothing and hide it.
func (t *serverTx) Commit() error {
	defer t.close()
	if t.conn.tx.ended {
		_ = t.tx.Rollback()
		return ErrTxEnded
	}
	mark := t.conn.wire.mark()
	if err := t.tx.Commit(); err != nil {
		return &commitError{err: err, sent: t.conn.wire.sentSince(mark)}
	}
	return nil
}

func (t *serverTx) Rollback() error {
	defer t.close()
	return t.tx.Rollback()
}

func (t *serverTx) close() {
	t.conn.tx = txState{}
	t.conn.uses.end()
}

// commitError is a failed COMMIT with the one fact that decides what it means:
// whether it was sent.
type commitError struct {
	err  error
	sent bool
}

func (e *commitError) Error() string { return e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }
