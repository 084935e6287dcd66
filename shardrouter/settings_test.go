package shardrouter_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// A server may be set up to leave transactions open, behind a statement or behind
// a COMMIT. What was answered with success stays all the same, and is not left to
// the next holder of the connection.
func TestServerThatLeavesTransactionsOpen(t *testing.T) {
	own := lab.MariaDB(t)
	lab.Exec(t, own.DSN(), "CREATE TABLE tx (n INT)")
	watch := lab.Open(t, own.DSN()+"?autocommit=1")
	for _, setting := range []string{"autocommit=0", "completion_type=CHAIN", "init_connect='SET autocommit=0'"} {
		lab.Exec(t, own.RootDSN(), "SET GLOBAL autocommit=1, completion_type=NO_CHAIN, init_connect=''", "SET GLOBAL "+setting, "DELETE FROM game.tx", "COMMIT")
		router, err := shardrouter.New(shardrouter.Config{
			Logger: quiet(), Shards: []shardrouter.Shard{{Name: "server_1", DSN: shardrouter.DSN(own.DSN()), MaxConns: 1}},
		})
		if err != nil {
			t.Fatal(err)
		}
		plain := func(ctx context.Context, _ string, c *sql.Conn) error {
			return exec(ctx, c, "INSERT INTO tx VALUES (1)")
		}
		inTx := func(ctx context.Context, _ string, c *sql.Conn) error {
			tx, err := c.BeginTx(ctx, nil)
			if err == nil {
				err = insertOne(ctx, tx)
			}
			if err == nil {
				err = tx.Commit()
			}
			return err
		}
		for i, write := range []func(context.Context, string, *sql.Conn) error{plain, inTx, plain} {
			if err := router.Each(t.Context(), write); err != nil {
				t.Fatal(err)
			}
			var rows int
			if err := watch.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM tx").Scan(&rows); err != nil || rows != i+1 {
				t.Errorf("%s: %d rows stay of %d (%v)", setting, rows, i+1, err)
			}
		}
		if err := router.Close(); err != nil {
			t.Error(err)
		}
	}
}
