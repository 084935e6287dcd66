package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// What a handler may leave open, and on which context.
func TestLeaks(t *testing.T) {
	query := func(ctx context.Context, l *shardrouter.Lease) (closeLate func(), err error) {
		rows, err := l.Conn().QueryContext(ctx, "SELECT seq FROM seq_1_to_100000")
		if err != nil {
			return nil, err
		}
		rows.Next()
		return func() { _ = rows.Close() }, rows.Err()
	}
	begin := func(ctx context.Context, l *shardrouter.Lease) (closeLate func(), err error) {
		tx, err := l.Conn().BeginTx(ctx, nil)
		if err != nil {
			return nil, err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO leaks VALUES (1)")
		return func() { _ = tx.Rollback() }, err
	}
	tests := []struct {
		name    string
		open    func(context.Context, *shardrouter.Lease) (func(), error)
		request bool // opened on the request's context
	}{
		{"rows on the request's context", query, true},
		{"rows on a context of their own", query, false},
		{"transaction on the request's context", begin, true},
		{"transaction on a context of its own", begin, false},
	}
	lab.Exec(t, server.RootDSN(), "CREATE OR REPLACE TABLE game.leaks (n INT)")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFleet(t, 1, func(c *shardrouter.Config) { c.Shards[0].MaxConns = 1 })
			l := f.lease(t, "server_1")
			request, cancel := context.WithCancel(t.Context())
			ctx := context.Background()
			if tt.request {
				ctx = request
			}
			closeLate, err := tt.open(ctx, l)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			l.ReleaseAfter(request, cancel)
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("the release blocked for %v", took)
			}
			if f.leaked() != 1 {
				t.Errorf("%d leaks reported, want 1", f.leaked())
			}
			next := f.lease(t, "server_1") // the only slot is free, and the connection clean
			var n int
			if err := next.Conn().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM leaks").Scan(&n); err != nil || n != 0 {
				t.Errorf("the next holder sees %d rows of the leaked transaction (%v)", n, err)
			}
			next.Release()
			if !tt.request {
				lab.Eventually(t, 5*time.Second, "the driver runs nothing for the leaked connection", func() bool {
					return driverGoroutines() <= 1 // the next holder's
				})
			}
			closeLate()
			lab.Eventually(t, 5*time.Second, "the leaked connection is closed", func() bool {
				return f.OpenServerConns("server_1") <= 1
			})
		})
	}
}

func TestReleaseIsIdempotent(t *testing.T) {
	f := newFleet(t, 1)
	l := f.lease(t, "server_1")
	l.Release()
	l.Release()
	if n := f.Stats()[0].InUse; n != 0 {
		t.Errorf("%d in use after two releases of one lease", n)
	}
	if f.leaked() != 0 {
		t.Error("a clean release was reported as a leak")
	}
}

// What one holder leaves on a connection, the next one must not find.
func TestNothingIsLeftForTheNextHolder(t *testing.T) {
	lab.Exec(t, server.RootDSN(), "CREATE OR REPLACE TABLE game.left_behind (n INT)")
	tests := []struct {
		name  string
		leave []string
		find  string // gives 0 on a clean connection
	}{
		{"open transaction", []string{"BEGIN", "INSERT INTO left_behind VALUES (1)"}, "SELECT COUNT(*) FROM left_behind"},
		{"user variable", []string{"SET @gold = 7"}, "SELECT COALESCE(@gold, 0)"},
		{"sql_mode", []string{"SET sql_mode = 'ANSI_QUOTES'"}, "SELECT @@sql_mode = 'ANSI_QUOTES'"},
		{"user lock", []string{"DO GET_LOCK('hero', 0)"}, "SELECT IS_USED_LOCK('hero') IS NOT NULL"},
		{"temporary table", []string{"CREATE TEMPORARY TABLE left_behind (n INT)", "INSERT INTO left_behind VALUES (1)"}, "SELECT COUNT(*) FROM left_behind"},
		{"database", []string{"USE information_schema"}, "SELECT DATABASE() = 'information_schema'"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFleet(t, 1, func(c *shardrouter.Config) { c.Shards[0].MaxConns = 1 })
			l := f.lease(t, "server_1")
			for _, stmt := range tt.leave {
				if _, err := l.Conn().ExecContext(t.Context(), stmt); err != nil {
					t.Fatalf("%s: %v", stmt, err)
				}
			}
			l.Release()
			next := f.lease(t, "server_1")
			defer next.Release()
			lab.Eventually(t, 5*time.Second, "the server has ended the old connection", func() bool {
				var found int
				if err := next.Conn().QueryRowContext(t.Context(), tt.find).Scan(&found); err != nil {
					t.Fatal(err)
				}
				return found == 0
			})
			if n := f.Stats()[0].Discarded; n != 1 {
				t.Errorf("%d connections discarded, want 1", n)
			}
		})
	}
}

// A second statement while rows are open gets a typed error, and the rows go on.
func TestStatementWhileRowsAreOpen(t *testing.T) {
	f := newFleet(t, 1)
	l := f.lease(t, "server_1")
	defer l.Release()
	rows, err := l.Conn().QueryContext(t.Context(), "SELECT seq FROM seq_1_to_1000")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	sum := 0
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		sum += n
		if n == 500 {
			if _, err := l.Conn().ExecContext(t.Context(), "SELECT 1"); !errors.Is(err, shardrouter.ErrRowsOpen) {
				t.Errorf("got %v, want ErrRowsOpen", err)
			}
			if _, err := l.Conn().BeginTx(t.Context(), nil); !errors.Is(err, shardrouter.ErrRowsOpen) {
				t.Errorf("BeginTx: got %v, want ErrRowsOpen", err)
			}
			if err := l.Conn().PingContext(t.Context()); !errors.Is(err, shardrouter.ErrRowsOpen) {
				t.Errorf("Ping: got %v, want ErrRowsOpen", err)
			}
		}
	}
	if err := rows.Err(); err != nil || sum != 500500 {
		t.Errorf("the rows came to %d with %v, want 500500", sum, err)
	}
	if err := l.Conn().PingContext(t.Context()); err != nil {
		t.Errorf("after the rows: %v", err)
	}
}

// driverGoroutines counts the connections for which the driver runs a goroutine.
func driverGoroutines() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return strings.Count(string(stacks), "mysql.(*mysqlConn).startWatcher.func1")
}

// A client that leaves in mid-transaction makes database/sql roll back; that is
// no leak of the handler's.
func TestAbortIsNoLeak(t *testing.T) {
	f := newFleet(t, 1)
	for range 20 {
		l := f.lease(t, "server_1")
		request, leave := context.WithCancel(t.Context())
		tx, err := l.Conn().BeginTx(request, nil)
		if err != nil {
			t.Fatal(err)
		}
		leave()
		l.ReleaseAfter(request, leave)
		_ = tx.Rollback()
	}
	if n := f.leaked(); n != 0 {
		t.Errorf("%d leaks reported", n)
	}
}

// Nor is what ends with a context of the handler's own, such as one with a timeout.
func TestWhatEndsWithItsOwnContextIsNoLeak(t *testing.T) {
	tests := []struct {
		name string
		when func(context.Context, *sql.Tx, *fleet, context.CancelFunc) error // it ends
	}{
		{"in a statement", func(ctx context.Context, tx *sql.Tx, _ *fleet, end context.CancelFunc) error {
			defer time.AfterFunc(20*time.Millisecond, end).Stop()
			_, err := tx.ExecContext(ctx, "DO SLEEP(5)")
			return err
		}},
		{"between two, and the rollback is not answered", func(ctx context.Context, tx *sql.Tx, f *fleet, end context.CancelFunc) error {
			met := f.proxies["server_1"].SwitchAfter([]byte("ROLLBACK"), faultproxy.BeforeForward, faultproxy.Freeze)
			end()
			<-met
			return tx.Rollback()
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFleet(t, 1)
			l := f.lease(t, "server_1")
			ctx, end := context.WithCancel(t.Context())
			defer end()
			tx, err := l.Conn().BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			err = tt.when(ctx, tx, f, end)
			_ = tx.Rollback()
			l.Release()
			if n := f.leaked(); n != 0 || err == nil {
				t.Errorf("got %v and %d leaks, want an error and none", err, n)
			}
		})
	}
}

// A statement that ends with its own context takes the connection along, and
// says nothing about the shard.
func TestLeaseKnowsThatItsConnectionIsGone(t *testing.T) {
	f := newFleet(t, 1)
	l := f.lease(t, "server_1")
	defer l.Release()
	if !l.Alive() {
		t.Fatal("a fresh lease is not alive")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := l.Conn().ExecContext(ctx, "DO SLEEP(5)"); err == nil {
		t.Fatal("the statement outlived its context")
	}
	if l.Alive() {
		t.Error("the lease takes its dead connection for alive")
	}
	if _, err := l.Conn().ExecContext(t.Context(), "DO 1"); err == nil {
		t.Error("the dead connection answered")
	}
	if s := f.Health().View("server_1").State; s != healthcache.Up {
		t.Errorf("server_1 is %q after a timeout of the handler's own, want up", s)
	}
}
