package shardrouter

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
)

// mysqlStmt and mysqlRows list what the driver's statements and rows
// implement.
type (
	mysqlStmt interface {
		driver.Stmt
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

// serverStmt is a prepared statement on a serverConn.
type serverStmt struct {
	mysqlStmt
	conn *serverConn
}

func (s *serverStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.conn.free(); err != nil {
		return nil, err
	}
	s.conn.uses.begin()
	defer s.conn.uses.end()
	res, err := s.mysqlStmt.ExecContext(ctx, args)
	return res, s.conn.note(err)
}

func (s *serverStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.conn.free(); err != nil {
		return nil, err
	}
	s.conn.uses.begin()
	rows, err := s.mysqlStmt.QueryContext(ctx, args)
	return s.conn.wrapRows(rows, s.conn.note(err))
}

// serverRows is a result under way; it counts as a use of its connection until
// it is closed.
type serverRows struct {
	mysqlRows
	conn *serverConn
}

// wrapRows takes over the use that the caller has begun.
func (c *serverConn) wrapRows(inner driver.Rows, err error) (driver.Rows, error) {
	if err != nil {
		c.uses.end()
		return nil, err
	}
	rows, ok := inner.(mysqlRows)
	if !ok {
		c.uses.end()
		return nil, errors.Join(errForeignDriver, inner.Close())
	}
	c.rows++
	return &serverRows{mysqlRows: rows, conn: c}, nil
}

func (r *serverRows) Next(dest []driver.Value) error {
	err := r.mysqlRows.Next(dest)
	if errors.Is(err, io.EOF) {
		return err
	}
	return r.conn.note(err)
}

func (r *serverRows) Close() error {
	r.conn.rows--
	defer r.conn.uses.end()
	return r.mysqlRows.Close()
}
