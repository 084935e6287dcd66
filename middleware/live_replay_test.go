package middleware_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/shardrouter"
)

const (
	readGold = "SELECT amount FROM gold WHERE player = 1"
	digGold  = "UPDATE gold SET amount = amount + 1 WHERE player = 1"
)

// broken is one way for a request to lose its connection half-way, and what is
// to come of it.
type broken struct {
	first  func(ctx context.Context, a *app) error // before the loss
	loss   faultproxy.Mode
	second func(ctx context.Context) error // meets the loss; default: reads
	runs   int64
	gold   string // afterwards
}

func read(ctx context.Context) error {
	var amount int
	return middleware.Conn(ctx).QueryRowContext(ctx, readGold).Scan(&amount)
}

func dig(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, digGold)
	return err
}

// liveReplay holds on a real server that a request which only read is served by
// the next shard, and that any other fails as it always did.
func liveReplay(t *testing.T, w *world) {
	for name, tt := range map[string]broken{
		"reads":  {first: func(ctx context.Context, _ *app) error { return read(ctx) }, loss: faultproxy.Cut, runs: 2, gold: "0"},
		"frozen": {loss: faultproxy.Freeze, runs: 2, gold: "0"},
		"rows under way": {loss: faultproxy.Cut, runs: 2, gold: "0", second: func(ctx context.Context) error {
			rows, err := middleware.Conn(ctx).QueryContext(ctx, readGold)
			if err != nil {
				return err
			}
			defer func() { _ = rows.Close() }()
			for rows.Next() {
			}
			return rows.Err()
		}},
		"given back after the loss": {loss: faultproxy.Cut, runs: 2, gold: "0", second: func(ctx context.Context) error {
			err := read(ctx)
			middleware.Release(ctx)
			return err
		}},
		"writes first": {first: func(ctx context.Context, _ *app) error {
			return dig(ctx, middleware.Conn(ctx))
		}, loss: faultproxy.Cut, runs: 1, gold: "1"},
		// At a cut it could be known that the write was not sent.
		"writes last": {loss: faultproxy.Freeze, runs: 1, gold: "0", second: func(ctx context.Context) error {
			return dig(ctx, middleware.Conn(ctx))
		}},
		"writes, gives back and reads": {first: func(ctx context.Context, _ *app) error {
			err := dig(ctx, middleware.Conn(ctx))
			middleware.Release(ctx)
			if err == nil {
				_, err = middleware.Acquire(ctx)
			}
			return err
		}, loss: faultproxy.Cut, runs: 1, gold: "1"},
		"writes in a transaction": {first: func(ctx context.Context, _ *app) error {
			return middleware.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, digGold)
				return err
			})
		}, loss: faultproxy.Cut, runs: 1, gold: "1"},
		"writes beside": {first: func(ctx context.Context, a *app) error {
			l, err := a.router.Acquire(ctx, "b")
			if err != nil {
				return err
			}
			defer l.Release()
			return dig(ctx, l.Conn())
		}, loss: faultproxy.Cut, runs: 1, gold: "1"},
		"changes the session": {first: func(ctx context.Context, a *app) error {
			a.store.Put(ctx, "name", "ada") // an equal value
			return nil
		}, loss: faultproxy.Cut, runs: 1, gold: "0"},
		"its own deadline": {loss: faultproxy.Freeze, runs: 1, gold: "0", second: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			_ = read(ctx)
			return read(ctx)
		}},
	} {
		t.Run(name, func(t *testing.T) { tt.run(t, newWorld(t, w.server)) })
	}
}

func (tt broken) run(t *testing.T, w *world) {
	var a *app
	var runs atomic.Int64
	shards := []shardrouter.Shard{w.shard("a"), w.shard("b")}
	c := w.playerOn(shards...)
	a = w.start(shards, map[string]http.HandlerFunc{"/two": func(rw http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if runs.Add(1) == 1 {
			if tt.first != nil {
				if err := tt.first(ctx, a); err != nil {
					t.Error(err)
				}
			}
			w.set(tt.loss, "a")
		}
		second := read
		if tt.second != nil {
			second = tt.second
		}
		if err := second(ctx); err != nil {
			middleware.WriteError(rw, r, err)
			return
		}
		_, _ = fmt.Fprint(rw, "well")
	}})
	a.expect(healthcache.Up, "a", "b")
	status, header, body := visit(t, c, a.url+"/two")
	if runs.Load() != tt.runs {
		t.Errorf("%d runs, want %d, log %s", runs.Load(), tt.runs, a.log)
	}
	switch {
	case tt.runs == 1 && status < http.StatusInternalServerError:
		t.Errorf("status %d, body %q", status, body)
	case tt.runs == 2 && (status != http.StatusOK || body != "well" || header.Get("X-Shard") != "b"):
		t.Errorf("status %d by %q, body %q, log %s", status, header.Get("X-Shard"), body, a.log)
	case tt.runs == 2 && w.route()["db_server"] != "b":
		t.Errorf("the session says %v", w.route())
	}
	if _, _, gold := visit(t, c, a.url); gold != tt.gold {
		t.Errorf("gold is %q, want %s", gold, tt.gold)
	}
}

// TestReplayAfterKill holds that a request under way on a server that is killed
// ends with one normal answer from the other.
func TestReplayAfterKill(t *testing.T) {
	first, second := lab.MariaDB(t), lab.MariaDB(t)
	for _, s := range []*lab.MariaDBServer{first, second} {
		lab.Exec(t, s.DSN(), "CREATE TABLE gold (player INT PRIMARY KEY, amount INT NOT NULL)")
	}
	w := newWorld(t, first)
	lab.Exec(t, second.DSN(), "REPLACE INTO gold VALUES (1, 0)")
	shards := []shardrouter.Shard{
		{Name: "a", DSN: shardrouter.DSN(first.DSN())}, {Name: "b", DSN: shardrouter.DSN(second.DSN())},
	}
	c := w.playerOn(shards...)
	a := w.start(shards, map[string]http.HandlerFunc{"/kill": func(rw http.ResponseWriter, r *http.Request) {
		var n int
		if err := read(r.Context()); err != nil {
			middleware.WriteError(rw, r, err)
			return
		}
		if middleware.Shard(r.Context()) == "a" {
			first.Kill()
		}
		err := middleware.Conn(r.Context()).QueryRowContext(r.Context(), "SELECT COUNT(*) FROM gold").Scan(&n)
		if err != nil {
			middleware.WriteError(rw, r, err)
			return
		}
		_, _ = fmt.Fprint(rw, n, middleware.Rotated(r.Context()))
	}})
	a.expect(healthcache.Up, "a", "b")
	status, header, body := visit(t, c, a.url+"/kill")
	if status != http.StatusOK || header.Get("X-Shard") != "b" || body != "1 true" {
		t.Errorf("status %d by %q, body %q, log %s", status, header.Get("X-Shard"), body, a.log)
	}
	if log := a.log.String(); strings.Contains(log, "request refused") || !strings.Contains(log, "request run again") {
		t.Errorf("log %s", log)
	}
}
