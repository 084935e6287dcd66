package shardrouter_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/shardhop/shardhop/shardrouter"
)

// closed is how many statements the server has closed on the connection.
func closed(ctx context.Context, t *testing.T, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (n int) {
	t.Helper()
	if err := db.QueryRowContext(ctx, "SHOW SESSION STATUS LIKE 'Com_stmt_close'").Scan(new(string), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A Galera member that rolls a transaction back while it is told to close a
// statement says so to nobody, and the COMMIT that follows is answered with OK.
func TestStatementsAreClosedAfterTheirTransaction(t *testing.T) {
	router := start(t, shardrouter.Config{Shards: []shardrouter.Shard{{Name: "server_1", DSN: shardrouter.DSN(server.DSN() + "?interpolateParams=false")}}})
	lease, err := router.Acquire(t.Context(), "server_1")
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	conn := lease.Conn()
	for _, tc := range []struct {
		statements int
		early      int
		end        func(*sql.Tx) error
		reason     string
	}{
		{5, 0, (*sql.Tx).Commit, "committed"},
		{5, 0, (*sql.Tx).Rollback, "rolled back"},
		{105, 5, (*sql.Tx).Commit, "more than the server should keep open"},
	} {
		before := closed(t.Context(), t, conn)
		tx, err := conn.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range tc.statements {
			var n int
			if err := tx.QueryRowContext(t.Context(), "SELECT ? + 0", i).Scan(&n); err != nil || n != i {
				t.Fatalf("%s: %d, %v", tc.reason, n, err)
			}
		}
		if n := closed(t.Context(), t, tx) - before; n != tc.early {
			t.Errorf("%s: %d closed within the transaction, want %d", tc.reason, n, tc.early)
		}
		if err := tc.end(tx); err != nil {
			t.Fatalf("%s: %v", tc.reason, err)
		}
		if n := closed(t.Context(), t, conn) - before; n != tc.statements {
			t.Errorf("%s: %d closed in the end, want %d", tc.reason, n, tc.statements)
		}
	}
}
