package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// statements returns how many like one run on the server.
func statements(t *testing.T, like string) (n int) {
	t.Helper()
	db, err := sql.Open("mysql", server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE ?", like).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// leaveWhile runs call and ends its context once a statement like one runs.
func leaveWhile(t *testing.T, like string, call func(context.Context) error) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	done := make(chan error, 1)
	go func() { done <- call(ctx) }()
	lab.Eventually(t, 20*time.Second, "it runs", func() bool { return statements(t, like) > 0 })
	leave()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("who has left got %v, want context.Canceled", err)
	}
	lab.Eventually(t, 10*time.Second, "nothing runs for who has left", func() bool { return statements(t, like) == 0 })
}

// waitsForRow waits for the row of lockRow.
const waitsForRow = "UPDATE tx SET n = 8 WHERE n = 7"

// lockRow inserts a row that stays locked until the test ends.
func lockRow(t *testing.T) {
	t.Helper()
	lab.Exec(t, server.DSN(), "INSERT INTO tx VALUES (7)")
	slow, err := lab.Open(t, server.DSN()).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slow.Rollback() })
	if _, err := slow.ExecContext(t.Context(), "DELETE FROM tx WHERE n = 7"); err != nil {
		t.Fatal(err)
	}
}

// A client that leaves while its statement waits leaves none of the server's
// connections taken, and no key either: who comes back with it is served.
func TestClientThatLeavesAndComesBackWithItsKey(t *testing.T) {
	s := newSession(t, "(n INT PRIMARY KEY)", 1)
	lockRow(t)
	leaveWhile(t, waitsForRow, func(ctx context.Context) error {
		_, err := shardrouter.TxAnswer(ctx, s, dig{key: t.Name()}.opts(), func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			_, err := tx.ExecContext(ctx, waitsForRow)
			return nil, err
		})
		return err
	})
	answer, err := dig{key: t.Name(), text: "gold"}.on(t.Context(), s)
	if err != nil || answer.Repeated || string(answer.Body) != "gold" {
		t.Errorf("got %q, repeated %v, %v, want a first answer", answer.Body, answer.Repeated, err)
	}
}

// Who repeats a slow key and leaves again, however often, takes none of the server's
// connections.
func TestClientThatLeavesWhileItWaitsForAKey(t *testing.T) {
	first := newSession(t, "(n INT)", 1)
	_, err := shardrouter.TxAnswer(t.Context(), first, dig{key: t.Name()}.opts(), func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		for range 2 {
			s := &session{f: first.f, shard: "server_1"}
			leaveWhile(t, "INSERT INTO%shardhop_outcomes%", func(ctx context.Context) error {
				_, err := dig{key: t.Name()}.on(ctx, s)
				return err
			})
			s.end()
		}
		return nil, insertOne(ctx, tx)
	})
	if err != nil || count(t) != 1 {
		t.Errorf("the first got %v, and %d rows", err, count(t))
	}
}

// Clients that leave have left nothing open: what is rolled back beside their
// bodies is no leak.
func TestClientsThatLeaveAreNoLeak(t *testing.T) {
	const clients = 20
	first := newSession(t, "(n INT PRIMARY KEY)", 1, func(c *shardrouter.Config) { c.Shards[0].MaxConns = clients })
	lockRow(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var asking sync.WaitGroup
	for range clients {
		asking.Go(func() {
			s := &session{f: first.f, shard: "server_1"}
			defer s.end()
			_ = shardrouter.Tx(ctx, s, withRow, func(ctx context.Context, tx *sql.Tx) error { return call(ctx, tx, waitsForRow, false) })
		})
	}
	lab.Eventually(t, 20*time.Second, "all wait", func() bool { return statements(t, waitsForRow) == clients })
	leave()
	asking.Wait()
	if n := first.f.leaked(); n != 0 {
		t.Errorf("%d leaks were reported", n)
	}
}

// Nor is it one where the body has seen its context end before the rollback is
// answered.
func TestRollbackBesideTheBodyIsNoLeak(t *testing.T) {
	s := newSession(t, "(n INT)", 1)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	s.f.proxies["server_1"].SwitchAfter([]byte("ROLLBACK"), faultproxy.BeforeForward, faultproxy.Freeze)
	err := shardrouter.Tx(ctx, s, withoutRow, func(_ context.Context, tx *sql.Tx) (over error) {
		leave()
		lab.Eventually(t, 10*time.Second, "the transaction is over", func() bool {
			over = insertOne(t.Context(), tx)
			return errors.Is(over, sql.ErrTxDone)
		})
		return over
	})
	s.end()
	if n := s.f.leaked(); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v and %d leaks, want context.Canceled and none", err, n)
	}
}

// Who leaves while others wait for its place leaves none of the server's connections
// taken either: with few places and a slow lock there would be more of them with
// each one who leaves.
func TestClientThatLeavesAFullPool(t *testing.T) {
	s := newSession(t, "(n INT PRIMARY KEY)", 1, func(c *shardrouter.Config) { c.Shards[0].MaxConns = 1 })
	lockRow(t)
	next := &session{f: s.f, shard: "server_1"}
	stays, end := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	leaveWhile(t, "UPDATE%leaves%", func(ctx context.Context) error {
		return shardrouter.Tx(ctx, s, withRow, func(ctx context.Context, tx *sql.Tx) error {
			waiting.Go(func() {
				_ = shardrouter.Tx(stays, next, withRow, func(ctx context.Context, tx *sql.Tx) error { return call(ctx, tx, waitsForRow, false) })
			})
			lab.Eventually(t, 10*time.Second, "the next one waits", func() bool { return s.f.Stats()[0].Waiting == 1 })
			return call(ctx, tx, waitsForRow+" /* and leaves */", false)
		})
	})
	end()
	waiting.Wait()
	next.end()
}

// Nor does a statement leave one taken that was slower than the read timeout, and
// whose place another has got meanwhile.
func TestReadTimeoutInAFullPool(t *testing.T) {
	s := newSession(t, "(n INT PRIMARY KEY)", 1, func(c *shardrouter.Config) {
		c.Shards[0].MaxConns, c.ReadTimeout = 1, 500*time.Millisecond
	})
	lockRow(t)
	next := &session{f: s.f, shard: "server_1"}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	took, end := make(chan struct{}), make(chan struct{})
	var asking sync.WaitGroup
	come := sync.OnceFunc(func() {
		tell := sync.OnceFunc(func() { close(took) })
		asking.Go(func() {
			_ = shardrouter.Tx(t.Context(), next, withRow, func(context.Context, *sql.Tx) error { tell(); <-end; return nil })
		})
		lab.Eventually(t, 10*time.Second, "the next one waits", func() bool { return s.f.Stats()[0].Waiting == 1 })
	})
	asking.Go(func() {
		_ = shardrouter.Tx(ctx, s, withRow, func(ctx context.Context, tx *sql.Tx) error {
			come()
			return call(ctx, tx, waitsForRow+" /* too slow */", false)
		})
	})
	<-took
	lab.Eventually(t, 10*time.Second, "nothing runs for the slow one", func() bool { return statements(t, "UPDATE%too slow%") == 0 })
	leave()
	close(end)
	asking.Wait()
	s.end()
	next.end()
}

// Who leaves a shard to which no connection can be had any more is not kept, and
// keeps nothing.
func TestClientThatLeavesAnUnreachableShard(t *testing.T) {
	s := newSession(t, "(n INT PRIMARY KEY)", 1, func(c *shardrouter.Config) { c.Shards[0].MaxConns = 1 })
	lockRow(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	done := make(chan error, 1)
	go func() {
		done <- shardrouter.Tx(ctx, s, withRow, func(ctx context.Context, tx *sql.Tx) error { return call(ctx, tx, waitsForRow, false) })
	}()
	lab.Eventually(t, 20*time.Second, "it runs", func() bool { return statements(t, waitsForRow) > 0 })
	s.f.proxies["server_1"].SetMode(faultproxy.Silent)
	leave()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("who has left got %v, want context.Canceled", err)
	}
	s.end()
	if n := s.f.Stats()[0].InUse; n != 0 || s.f.leaked() != 0 {
		t.Errorf("%d places are taken, and %d leaks", n, s.f.leaked())
	}
}
