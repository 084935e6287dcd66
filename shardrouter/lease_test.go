package shardrouter_test

import (
	"context"
	"testing"
	"time"

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
			l.ReleaseAfter(cancel)
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
