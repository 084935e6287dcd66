package shardrouter

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"time"
)

// mysqlStmt and mysqlRows list what the driver's statements and rows
// implement.
type (
	mysqlStmt interface {
		driver.Stmt
		columnConverter
		driver.NamedValueChecker
		driver.StmtExecContext
		driver.StmtQueryContext
	}
	mysqlRows interface {
		driver.Rows
		driver.RowsNextResultSet
		driver.RowsColumnTypeDatabaseTypeName
		driver.RowsColumnTypeNullable
		driver.RowsColumnTypePrecisionScale
		driver.RowsColumnTypeScanType
	}
)

var (
	_ mysqlStmt = (*serverStmt)(nil)
	_ mysqlRows = (*serverRows)(nil)
)

// serverStmt is a prepared statement on a serverConn.
type serverStmt struct {
	mysqlStmt
	conn   *serverConn
	query  string
	traits traits
	closed bool
}

func (s *serverStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (res driver.Result, err error) {
	if err := s.conn.mayRun(ctx, s.traits); err != nil {
		return nil, err
	}
	s.conn.begin(s.traits)
	defer s.conn.tell(&err, s.query, s.conn.wire.mark())
	defer s.conn.after(&err)
	if err = s.conn.mark(ctx); err != nil {
		return nil, err
	}
	if res, err = s.mysqlStmt.ExecContext(ctx, args); err == nil {
		err = s.conn.vouch(ctx, s.traits)
	}
	return res, s.conn.stillIn(ctx, err)
}

func (s *serverStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (rows driver.Rows, err error) {
	if err := s.conn.mayRun(ctx, s.traits); err != nil {
		return nil, err
	}
	s.conn.begin(s.traits)
	defer s.conn.tell(&err, s.query, s.conn.wire.mark())
	defer s.conn.after(&err)
	if err = s.conn.mark(ctx); err != nil {
		return nil, err
	}
	inner, err := s.mysqlStmt.QueryContext(ctx, args)
	return s.conn.opened(ctx, s.query, s.traits, inner, err)
}

// maxClosing bounds the statements of one transaction that wait to be closed.
const maxClosing = 100

// Close ends the statement on the server; within a transaction, after that has
// ended. The server does not answer to it, and so a Galera member that rolls the
// transaction back in that moment says so to nobody: what follows runs outside
// of the transaction, and COMMIT is answered with OK.
func (s *serverStmt) Close() error {
	if !s.closed {
		s.closed = true
		s.conn.prepared--
	}
	tx := &s.conn.tx
	if !tx.open || len(tx.closing) == maxClosing {
		return s.mysqlStmt.Close()
	}
	tx.closing = append(tx.closing, s.mysqlStmt)
	return nil
}

// serverRows is a result under way; it counts as a use of its connection until
// it is closed. Any step of it can tell that the server has ended the
// transaction.
type serverRows struct {
	mysqlRows
	conn  *serverConn
	query string
	read  bool // to the end: nothing more is to come
}

// opened books the result of a query.
func (c *serverConn) opened(ctx context.Context, query string, t traits, inner driver.Rows, err error) (driver.Rows, error) {
	if err != nil {
		return nil, c.stillIn(ctx, err)
	}
	if err := c.vouch(ctx, t); err != nil {
		c.wire.cut()
		_ = inner.Close() // which reads nothing any more
		return nil, err
	}
	rows, ok := inner.(mysqlRows)
	if !ok {
		return nil, errors.Join(errForeignDriver, inner.Close())
	}
	c.rows++
	c.uses.hold()
	return &serverRows{mysqlRows: rows, conn: c, query: query}, nil
}

func (r *serverRows) Next(dest []driver.Value) (err error) {
	defer r.guard(&err)
	if err = r.mysqlRows.Next(dest); err == nil {
		return nil
	}
	return r.step(err)
}

func (r *serverRows) NextResultSet() (err error) {
	defer r.guard(&err)
	if err = r.mysqlRows.NextResultSet(); err == nil {
		return nil
	}
	return r.step(err)
}

// Close reads the rest of the result, and with it what the server has to say
// at its end.
func (r *serverRows) Close() (err error) {
	r.conn.rows--
	defer r.conn.uses.end()
	if r.read {
		return r.mysqlRows.Close()
	}
	r.conn.uses.begin(time.Now())
	defer r.tell(&err)
	defer r.conn.after(&err)
	return r.conn.stillIn(context.Background(), r.mysqlRows.Close())
}

// guard is deferred around every step through the rows, as after is around calls of
// the connection.
func (r *serverRows) guard(err *error) {
	if p := recover(); p != nil {
		*err = r.step(r.conn.broken(p))
	}
}

// step judges the error of a step through the rows. io.EOF is their plain end.
func (r *serverRows) step(err error) error {
	if errors.Is(err, io.EOF) {
		r.read = !r.HasNextResultSet()
		if r.read && r.conn.tx.marked {
			err = r.endOfCall()
		}
	}
	if !errors.Is(err, io.EOF) {
		r.conn.note(err)
		r.tell(&err)
	}
	return err
}

// endOfCall is io.EOF, or that what gave the rows has ended the transaction; see
// stillIn. It comes with the end of the rows, since database/sql drops the error
// of a Close behind that. The driver takes another statement once they are closed.
func (r *serverRows) endOfCall() error {
	if err := r.conn.stillIn(context.Background(), r.mysqlRows.Close()); err != nil {
		return err
	}
	return io.EOF
}

// tell has an error in the midst of the rows say what it leaves open.
func (r *serverRows) tell(err *error) {
	if *err != nil {
		*err = r.conn.typed(*err, r.query, reachAnswered)
	}
}
