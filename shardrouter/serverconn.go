package shardrouter

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
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
// left open or behind, and whether the server has ended the present
// transaction. database/sql calls it from one goroutine at a time.
type serverConn struct {
	mysqlConn
	wire  *wire // nil: see wire
	limit int   // of the size of its statements; see packetLimit
	era   *era
	node  *node
	peer  peer
	// writer is what node was recorded as when the connection was opened.
	writer *writer
	// pool and untie are nil for a connection of a probe. untie ends the tie to
	// the era.
	pool  *pool
	untie func() bool

	uses uses // safe for any goroutine
	// wrote belongs to the present lease: a statement that does not provably read
	// was run on it. nil before the first.
	wrote *atomic.Bool
	// lost: in the present or last transaction, the connection went, or the
	// node refused to go on, before COMMIT was sent. Safe for any goroutine.
	lost atomic.Bool
	// rolledBack: in the present or last transaction, the server answered that it
	// has rolled it back. Safe for any goroutine.
	rolledBack atomic.Bool
	// stays: since the last BeginTx, something was sent that a rollback of the
	// transaction may leave: what may commit it in its midst, a COMMIT, or a
	// statement after its end. Safe for any goroutine.
	stays  atomic.Bool
	ending *ending // of the present lease; nil before the first
	// open is the transaction that is open; nil: none is. Safe for any goroutine.
	open atomic.Pointer[serverTx]

	lastUsed time.Time
	asked    time.Time // when something was last about to be sent
	tx       txState
	rows     int  // results that are open
	prepared int  // statements that were not closed yet
	tainted  bool // a statement may have left something behind; see leavesResidue
	// spent: the server ends the connection, takes no writes any more, or may
	// still have a transaction open on it.
	spent bool
	// foreignText: a statement may have set a character set; see mustPrepare.
	foreignText bool
}

// txState is what is known of the transaction under way.
type txState struct {
	open     bool
	readOnly bool // begun as READ ONLY
	// ended: the server has rolled it back by itself, and what follows would
	// run outside of it.
	ended bool
	// opaque: the present statement may commit; marked: it stands behind a mark;
	// stayed: what stays was before it. See stillIn.
	opaque, marked, stayed bool
	// closing are its statements that are to be closed after it.
	closing []driver.Stmt
}

func (c *serverConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (res driver.Result, err error) {
	t, err := c.admit(ctx, query)
	if err != nil {
		return nil, err
	}
	if c.mustPrepare(query, args) {
		return nil, driver.ErrSkip
	}
	c.begin(t)
	defer c.tell(&err, query, c.wire.mark())
	defer c.after(&err)
	if err = c.mark(ctx); err != nil {
		return nil, err
	}
	if res, err = c.mysqlConn.ExecContext(ctx, query, args); err == nil {
		err = c.vouch(ctx, t)
	}
	c.skipped(err)
	return res, c.stillIn(ctx, err)
}

func (c *serverConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (rows driver.Rows, err error) {
	t, err := c.admit(ctx, query)
	if err != nil {
		return nil, err
	}
	if c.mustPrepare(query, args) {
		return nil, driver.ErrSkip
	}
	c.begin(t)
	defer c.tell(&err, query, c.wire.mark())
	defer c.after(&err)
	if err = c.mark(ctx); err != nil {
		return nil, err
	}
	inner, err := c.mysqlConn.QueryContext(ctx, query, args)
	c.skipped(err)
	return c.opened(ctx, query, t, inner, err)
}

func (c *serverConn) PrepareContext(ctx context.Context, query string) (stmt driver.Stmt, err error) {
	t, err := c.admit(ctx, query)
	if err != nil {
		return nil, err
	}
	if c.pool != nil && c.outgrownBy(query) {
		return nil, c.statementError(NotSent, mysql.ErrPktTooLarge)
	}
	c.uses.begin(c.asked)
	defer c.tellUnrun(&err)
	defer c.after(&err)
	inner, err := c.mysqlConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	full, ok := inner.(mysqlStmt)
	if !ok {
		return nil, errForeignDriver
	}
	c.prepared++
	return &serverStmt{mysqlStmt: full, conn: c, query: query, traits: t}, nil
}

func (c *serverConn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// BeginTx refuses a second transaction: START TRANSACTION would commit the
// first.
func (c *serverConn) BeginTx(ctx context.Context, opts driver.TxOptions) (tx driver.Tx, err error) {
	switch {
	case c.tx.open && c.wire.gone(): // which database/sql has yet to hear of
		return nil, c.statementError(NotSent, errGone)
	case c.tx.open:
		return nil, ErrTxOpen
	}
	if err := c.free(traits{}); err != nil {
		return nil, err
	}
	if !opts.ReadOnly && c.overtaken(ctx.Done()) {
		return nil, c.refuse(ctx)
	}
	c.uses.begin(c.asked)
	defer c.tellUnrun(&err)
	defer c.after(&err)
	c.lost.Store(false)
	c.rolledBack.Store(false)
	c.stays.Store(false)
	inner, err := c.mysqlConn.BeginTx(ctx, opts)
	if err != nil {
		c.tainted = true // the isolation level may be set for whatever comes next
		return nil, err
	}
	c.tx = txState{open: true, readOnly: opts.ReadOnly}
	c.uses.hold()
	t := &serverTx{tx: inner, conn: c, done: ctx.Done()}
	c.open.Store(t)
	return t, nil
}

func (c *serverConn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

func (c *serverConn) Ping(ctx context.Context) (err error) {
	if err := c.free(traits{}); err != nil {
		return err
	}
	c.uses.begin(c.asked)
	defer c.tellUnrun(&err)
	defer c.after(&err)
	return c.mysqlConn.Ping(ctx)
}

// after is deferred around every call of the driver, which counts as a use of
// the connection, and judges its error. A driver that panics on what a server
// sent has lost its connection.
func (c *serverConn) after(err *error) {
	if p := recover(); p != nil {
		*err = c.broken(p)
	}
	c.note(*err)
	c.uses.done()
	if c.pool != nil && answered(*err) {
		c.pool.bulkhead.answers.Add(1)
	}
}

// ResetSession is called before a pooled connection is lent again. Everything
// that makes it unfit is ErrBadConn, since database/sql ignores other errors
// and would hand the connection out all the same.
func (c *serverConn) ResetSession(ctx context.Context) error {
	if !c.fit() || c.mysqlConn.ResetSession(ctx) != nil {
		return driver.ErrBadConn
	}
	if time.Since(c.lastUsed) < c.pool.pingAfter {
		return nil
	}
	// A frozen node may answer a ping late, when another has become the writer.
	if c.Ping(ctx) != nil || !c.fit() {
		return driver.ErrBadConn
	}
	return nil
}

// IsValid is called when a connection comes back to the pool.
func (c *serverConn) IsValid() bool {
	c.lastUsed = time.Now()
	if c.tainted || c.prepared > 0 {
		c.pool.counter.discarded.Add(1)
		return false
	}
	return c.fit() && c.mysqlConn.IsValid()
}

func (c *serverConn) fit() bool {
	return !c.spent && !c.era.ended() && !c.wire.gone() && !c.tx.open && !c.stale()
}

// stale reports whether the shard's writer is another than the connection leads
// to.
func (c *serverConn) stale() bool { return c.writer != c.pool.connector.writer.Load() }

func (c *serverConn) Close() error {
	if c.untie != nil {
		c.untie()
	}
	return c.mysqlConn.Close()
}

// isContextError reports whether a statement ended because its own context did,
// which says nothing about the server.
func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
