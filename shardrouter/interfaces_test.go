package shardrouter_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"reflect"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/shardrouter"
)

// What database/sql/driver asks connections, statements, results and
// transactions for, the forms without a context among it.
var driverInterfaces = []reflect.Type{
	reflect.TypeFor[driver.Conn](),
	reflect.TypeFor[driver.ConnBeginTx](),
	reflect.TypeFor[driver.ConnPrepareContext](),
	reflect.TypeFor[driver.Execer](), //nolint:staticcheck // SA1019: the driver still has it
	reflect.TypeFor[driver.ExecerContext](),
	reflect.TypeFor[driver.NamedValueChecker](),
	reflect.TypeFor[driver.Pinger](),
	reflect.TypeFor[driver.Queryer](), //nolint:staticcheck // SA1019: the driver still has it
	reflect.TypeFor[driver.QueryerContext](),
	reflect.TypeFor[driver.SessionResetter](),
	reflect.TypeFor[driver.Validator](),

	reflect.TypeFor[driver.Stmt](),
	reflect.TypeFor[driver.ColumnConverter](), //nolint:staticcheck // SA1019: the driver still has it
	reflect.TypeFor[driver.StmtExecContext](),
	reflect.TypeFor[driver.StmtQueryContext](),

	reflect.TypeFor[driver.Rows](),
	reflect.TypeFor[driver.RowsNextResultSet](),
	reflect.TypeFor[driver.RowsColumnTypeDatabaseTypeName](),
	reflect.TypeFor[driver.RowsColumnTypeLength](),
	reflect.TypeFor[driver.RowsColumnTypeNullable](),
	reflect.TypeFor[driver.RowsColumnTypePrecisionScale](),
	reflect.TypeFor[driver.RowsColumnTypeScanType](),

	reflect.TypeFor[driver.Tx](),
	reflect.TypeFor[driver.Result](),
	reflect.TypeFor[mysql.Result](),
}

// Whatever interface of database/sql the driver's parts have, the wrapper's
// have too, and no other: database/sql takes other ways where one is missing,
// and a caller of Raw may ask for any.
func TestWrapperHasTheInterfacesOfTheDriver(t *testing.T) {
	router := routerOf(t, server.DSN())
	l, err := router.Lease(t.Context(), on("server_1"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	bare, wrapped := partsOf(t, bareConn(t, server.DSN())), partsOf(t, l.Conn())
	for name, part := range bare {
		for _, want := range driverInterfaces {
			has, forwards := reflect.TypeOf(part).Implements(want), reflect.TypeOf(wrapped[name]).Implements(want)
			if has != forwards {
				t.Errorf("%s: %v: the driver has it: %v, the wrapper: %v", name, want, has, forwards)
			}
		}
	}
}

// partsOf returns one of each thing that a connection makes, by its name.
func partsOf(t *testing.T, conn *sql.Conn) map[string]any {
	t.Helper()
	parts := map[string]any{}
	err := conn.Raw(func(dc any) error {
		c := dc.(interface {
			driver.ConnPrepareContext
			driver.ConnBeginTx
			driver.ExecerContext
			driver.QueryerContext
		})
		ctx := t.Context()
		parts["connection"] = c
		parts["result"] = must(c.ExecContext(ctx, "DO 1", nil))(t)
		rows := must(c.QueryContext(ctx, "SELECT 1", nil))(t)
		parts["rows as text"] = rows
		if err := rows.Close(); err != nil {
			return err
		}
		stmt := must(c.PrepareContext(ctx, "SELECT 1"))(t)
		parts["statement"] = stmt
		rows = must(stmt.(driver.StmtQueryContext).QueryContext(ctx, nil))(t)
		parts["rows of a prepared statement"] = rows
		if err := rows.Close(); err != nil {
			return err
		}
		if err := stmt.Close(); err != nil {
			return err
		}
		tx := must(c.BeginTx(ctx, driver.TxOptions{}))(t)
		parts["transaction"] = tx
		return tx.Rollback()
	})
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// The forms without a context do what the others do.
func TestLegacyForms(t *testing.T) {
	resetTable(t, "(n INT)")
	f := newFleet(t, 1, func(c *shardrouter.Config) { c.Shards[0].DSN += "?interpolateParams=false" })
	l := f.lease(t, "server_1")
	defer l.Release()
	err := l.Conn().Raw(func(dc any) error {
		c := dc.(interface {
			driver.Conn
			Exec(query string, args []driver.Value) (driver.Result, error)
			Query(query string, args []driver.Value) (driver.Rows, error)
		})
		if _, err := c.Exec("INSERT INTO tx VALUES (1)", nil); err != nil {
			return err
		}
		if _, err := c.Exec("INSERT INTO tx VALUES (?)", []driver.Value{int64(1)}); err != driver.ErrSkip { //nolint:errorlint // database/sql compares it as well
			t.Errorf("with arguments: got %v, want driver.ErrSkip", err)
		}
		stmt := must(c.Prepare("INSERT INTO tx VALUES (?)"))(t)
		if _, err := stmt.Exec([]driver.Value{int64(2)}); err != nil { //nolint:staticcheck // SA1019: it is what is tested
			return err
		}
		rows := must(c.Query("SELECT n FROM tx", nil))(t)
		if err := rows.Close(); err != nil {
			return err
		}
		stmt = must(c.Prepare("SELECT n FROM tx WHERE n = ?"))(t)
		rows = must(stmt.Query([]driver.Value{int64(2)}))(t) //nolint:staticcheck // SA1019: it is what is tested
		defer rows.Close()
		return rows.Next(make([]driver.Value, 1))
	})
	if err != nil || count(t) != 2 || l.OnlyRead() {
		t.Errorf("got %v and %d rows, taken for a read: %v; want two rows and a write", err, count(t), l.OnlyRead())
	}
}

// must returns what fails the test if a call has failed.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// bareConn opens a connection of the driver alone.
func bareConn(t *testing.T, dsn string) *sql.Conn {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// routerOf returns a router with one shard.
func routerOf(t testing.TB, dsn string) *shardrouter.Router {
	t.Helper()
	router, err := shardrouter.New(shardrouter.Config{
		Logger:      quiet(),
		HoldTimeout: shardrouter.HoldNone,
		Shards:      []shardrouter.Shard{{Name: "server_1", DSN: shardrouter.DSN(dsn)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = router.Close() })
	return router
}
