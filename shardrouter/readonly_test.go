package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// A server turns read-only under leases and idle connections. The transaction that
// meets it runs elsewhere, the idle connections go, and the shard serves again when
// it takes writes again.
func TestShardThatTurnsReadOnly(t *testing.T) {
	own := lab.MariaDB(t)
	lab.Exec(t, own.DSN(), "CREATE TABLE tx (n INT)")
	resetTable(t, "(n INT)")
	router := start(t, shardrouter.Config{
		HoldTimeout: shardrouter.HoldNone,
		Shards: []shardrouter.Shard{
			{Name: "server_1", DSN: shardrouter.DSN(own.DSN())},
			{Name: "server_2", DSN: dsnAt(server.Addr())},
		},
	})
	f := &fleet{Router: router}
	s := &session{f: f, shard: "server_1"}
	defer s.end()
	for range 2 { // the second on the warm connection
		if err := shardrouter.Tx(t.Context(), s, withRow, insertOne); err != nil {
			t.Fatal(err)
		}
	}
	plain, idle := f.lease(t, "server_1"), f.lease(t, "server_1")
	idle.Release()

	lab.Exec(t, own.RootDSN(), "SET GLOBAL read_only = 1")
	if err := shardrouter.Tx(t.Context(), s, withRow, insertOne); err != nil || s.shard != "server_2" {
		t.Errorf("the first write got %v on %s, want success on server_2", err, s.shard)
	}
	err := exec(t.Context(), plain.Conn(), "INSERT INTO tx VALUES (1)")
	if v := shardrouter.VerdictOf(err); v != shardrouter.VerdictReadOnly && v != shardrouter.VerdictLost {
		t.Errorf("a write outside of Tx got %v (%v), want that it did not run", err, v)
	}
	plain.Release()
	await(t, router, healthcache.ReadOnly, "server_1")
	lab.Eventually(t, 10*time.Second, "no connection to the server is left", func() bool { return router.OpenServerConns("server_1") == 0 })
	if got := f.served(t, "server_1"); got != "server_2" {
		t.Errorf("a session is served by %s meanwhile, want server_2", got)
	}

	lab.Exec(t, own.RootDSN(), "SET GLOBAL read_only = 0")
	await(t, router, healthcache.Up, "server_1")
	if got := f.served(t, "server_1"); got != "server_1" {
		t.Errorf("afterwards a session is served by %s, want server_1", got)
	}
	var there int
	if err := lab.Open(t, own.DSN()).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM tx").Scan(&there); err != nil {
		t.Fatal(err)
	}
	if here := count(t); there != 2 || here != 1 {
		t.Errorf("%d rows on the server and %d on the other, want two and one", there, here)
	}
}

// A procedure that is refused half-way has applied its first half. Nothing sends it
// again, on a connection or in a transaction.
func TestProcedureRefusedHalfWay(t *testing.T) {
	own := lab.MariaDB(t)
	lab.Exec(t, own.RootDSN(), "CREATE TABLE game.tx (n INT)",
		"CREATE PROCEDURE game.half() SQL SECURITY INVOKER BEGIN INSERT INTO tx VALUES (1); COMMIT; DO GET_LOCK('gate', 60); INSERT INTO tx VALUES (2); END")
	router := start(t, shardrouter.Config{
		HoldTimeout: shardrouter.HoldNone, ReadTimeout: time.Minute,
		Shards: []shardrouter.Shard{
			{Name: "server_1", DSN: shardrouter.DSN(own.DSN())},
			{Name: "server_2", DSN: dsnAt(server.Addr())},
		},
	})
	root := lab.Open(t, own.RootDSN())
	f := &fleet{Router: router}
	runs := 0
	for name, run := range map[string]func() error{
		"plain": func() error {
			l := f.lease(t, "server_1")
			defer l.Release()
			return exec(t.Context(), l.Conn(), "CALL half()")
		},
		"in Tx": func() error {
			s := &session{f: f, shard: "server_1"}
			defer s.end()
			return shardrouter.Tx(t.Context(), s, withRow, func(ctx context.Context, tx *sql.Tx) error {
				runs++
				return call(ctx, tx, "CALL half()", false)
			})
		},
	} {
		lab.Exec(t, own.RootDSN(), "TRUNCATE game.tx")
		gate := grab(t, root)
		if _, err := gate.ExecContext(t.Context(), "DO GET_LOCK('gate', 0)"); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- run() }()
		lab.Eventually(t, 10*time.Second, "the procedure is half-way", func() bool {
			var n int
			err := root.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock'").Scan(&n)
			return err == nil && n == 1
		})
		lab.Exec(t, own.RootDSN(), "SET GLOBAL read_only = 1")
		if _, err := gate.ExecContext(t.Context(), "DO RELEASE_LOCK('gate')"); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, shardrouter.ErrOutcomeUnknown) {
			t.Errorf("%s: got %v, want ErrOutcomeUnknown", name, err)
		}
		var rows int
		if err := root.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM tx").Scan(&rows); err != nil || rows != 1 {
			t.Errorf("%s: %d rows, %v, want the first half of one run", name, rows, err)
		}
		lab.Exec(t, own.RootDSN(), "SET GLOBAL read_only = 0")
		await(t, router, healthcache.Up, "server_1")
	}
	if runs != 1 {
		t.Errorf("the body ran %d times", runs)
	}
}
