package shardrouter

import (
	"context"
	"database/sql/driver"
)

// The interfaces of database/sql/driver that its newer ones have replaced. The
// driver still has them, and whoever reaches the connection through
// sql.Conn.Raw may ask for them.
type (
	legacyExecer interface {
		Exec(query string, args []driver.Value) (driver.Result, error)
	}
	legacyQueryer interface {
		Query(query string, args []driver.Value) (driver.Rows, error)
	}
	columnConverter interface {
		ColumnConverter(column int) driver.ValueConverter
	}
)

var (
	_ legacyExecer  = (*serverConn)(nil)
	_ legacyQueryer = (*serverConn)(nil)
)

func (c *serverConn) Exec(query string, args []driver.Value) (driver.Result, error) {
	return c.ExecContext(context.Background(), query, numbered(args))
}

func (c *serverConn) Query(query string, args []driver.Value) (driver.Rows, error) {
	return c.QueryContext(context.Background(), query, numbered(args))
}

func (s *serverStmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), numbered(args))
}

func (s *serverStmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), numbered(args))
}

// numbered gives arguments the form of the newer interfaces.
func numbered(args []driver.Value) []driver.NamedValue {
	named := make([]driver.NamedValue, len(args))
	for i, v := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return named
}
