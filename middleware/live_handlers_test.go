package middleware_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/shardrouter"
)

// liveLeaks holds that what a handler leaves open holds nothing up, is reported,
// and is not there for the next one.
func liveLeaks(t *testing.T, w *world) {
	var left []func() error // what the handlers forgot, to end it at last
	leak := func(ctx context.Context, conn *sql.Conn, inTx bool) error {
		if inTx {
			tx, err := conn.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			left = append(left, tx.Rollback)
			_, err = tx.ExecContext(ctx, "UPDATE gold SET amount = amount + 1 WHERE player = 1")
			return err
		}
		rows, err := conn.QueryContext(ctx, "SELECT * FROM gold") //nolint:rowserrcheck,sqlclosecheck // left open on purpose
		if err == nil {
			left = append(left, rows.Close)
			rows.Next()
		}
		return err
	}
	handlers := map[string]http.HandlerFunc{}
	for path, fn := range map[string]func(r *http.Request) error{
		"/rows":            func(r *http.Request) error { return leak(r.Context(), middleware.Conn(r.Context()), false) },
		"/tx":              func(r *http.Request) error { return leak(r.Context(), middleware.Conn(r.Context()), true) },
		"/rows/background": func(r *http.Request) error { return leak(context.Background(), middleware.Conn(r.Context()), false) },
		"/tx/background":   func(r *http.Request) error { return leak(context.Background(), middleware.Conn(r.Context()), true) },
	} {
		handlers[path] = func(rw http.ResponseWriter, r *http.Request) {
			if err := fn(r); err != nil {
				middleware.WriteError(rw, r, err)
			}
		}
	}
	a := w.start([]shardrouter.Shard{w.shard("a", maxConns(1))}, handlers)
	a.expect(healthcache.Up, "a")
	leaks := 0
	for path := range handlers {
		for range 2 {
			leaks++
			start := time.Now()
			if status, _, body := visit(t, player(t), a.url+path); status != http.StatusOK {
				t.Errorf("%s: status %d, %s", path, status, body)
			}
			if d := time.Since(start); d > 3*time.Second {
				t.Errorf("%s took %v", path, d)
			}
			if _, _, body := visit(t, player(t), a.url); body != "0" {
				t.Errorf("after %s the next request reads %q", path, body)
			}
		}
	}
	a.note(func() {
		if a.leaks != leaks {
			t.Errorf("%d leaks reported, want %d", a.leaks, leaks)
		}
	})
	for _, end := range left {
		_ = end() // ends the goroutines that database/sql keeps for it
	}
}

// liveNested holds that a handler which asks for a second connection of a full
// shard hears why it cannot have one.
func liveNested(t *testing.T, w *world) {
	var a *app
	a = w.start([]shardrouter.Shard{w.shard("a", maxConns(1))}, map[string]http.HandlerFunc{
		"/twice": func(rw http.ResponseWriter, r *http.Request) {
			lease, err := a.router.Acquire(r.Context(), middleware.Shard(r.Context()))
			if err == nil {
				lease.Release()
			}
			middleware.WriteError(rw, r, err)
		},
		"/again": func(rw http.ResponseWriter, r *http.Request) {
			first := middleware.Conn(r.Context())
			if second, err := middleware.Acquire(r.Context()); err != nil || second != first {
				t.Errorf("Acquire: %v", err)
			}
			if err := middleware.Assign(r.Context(), shardrouter.DefaultGroup); err != nil {
				t.Errorf("Assign: %v", err)
			}
			if err := middleware.Move(r.Context(), "a"); err != nil {
				t.Errorf("Move: %v", err)
			}
		},
	})
	a.expect(healthcache.Up, "a")
	start := time.Now()
	if status, _, _ := visit(t, player(t), a.url+"/twice"); status != http.StatusInternalServerError {
		t.Errorf("status %d", status)
	}
	if d := time.Since(start); d > time.Second {
		t.Errorf("it took %v", d)
	}
	if !strings.Contains(a.log.String(), "raise MaxConns") {
		t.Errorf("the log does not name the cause: %s", a.log)
	}
	visit(t, player(t), a.url+"/again")
}

// liveStreams holds that event streams leave the pool to the others.
func liveStreams(t *testing.T, w *world) {
	a := w.start([]shardrouter.Shard{w.shard("a", maxConns(2))}, map[string]http.HandlerFunc{
		"/events": func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(rw).Flush()
			<-r.Context().Done()
		},
	})
	a.expect(healthcache.Up, "a")
	c := player(t)
	for range 10 {
		res, err := c.Get(a.url + "/events")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode != http.StatusOK || res.Header.Get("X-Shard") != "a" {
			t.Fatalf("status %d by %q", res.StatusCode, res.Header.Get("X-Shard"))
		}
	}
	a.noLeaseOut()
	if status, _, body := visit(t, player(t), a.url); status != http.StatusOK || body != "0" {
		t.Errorf("status %d, body %q", status, body)
	}
}

// liveTx holds that a transaction whose connection is lost before COMMIT runs
// again elsewhere, and takes route, accessors and header along.
func liveTx(t *testing.T, w *world) {
	runs := 0
	shards := []shardrouter.Shard{w.shard("a"), w.shard("b")}
	c := w.playerOn(shards...)
	a := w.start(shards, map[string]http.HandlerFunc{
		"/dig": func(rw http.ResponseWriter, r *http.Request) {
			err := middleware.Tx(r.Context(), func(ctx context.Context, tx *sql.Tx) error {
				runs++
				if runs == 1 {
					w.set(faultproxy.Cut, "a")
				}
				_, err := tx.ExecContext(ctx, "UPDATE gold SET amount = amount + 1 WHERE player = 1")
				return err
			})
			if err != nil {
				middleware.WriteError(rw, r, err)
				return
			}
			_, _ = fmt.Fprint(rw, middleware.Shard(r.Context()), middleware.Rotated(r.Context()))
		},
	})
	a.expect(healthcache.Up, "a", "b")
	w.proxies["a"].SetMode(faultproxy.Pass)
	status, header, body := visit(t, c, a.url+"/dig")
	if status != http.StatusOK || header.Get("X-Shard") != "b" || body != "btrue" || runs != 2 {
		t.Errorf("status %d by %q after %d runs, body %q, log %s", status, header.Get("X-Shard"), runs, body, a.log)
	}
	if rt := w.route(); rt["db_server"] != "b" || rt["home"] != "a" {
		t.Errorf("the session says %v", rt)
	}
	if _, _, body := visit(t, c, a.url); body != "1" {
		t.Errorf("gold is %q", body)
	}
}

// liveFrozen holds that a server which freezes under a statement costs a
// probe's time, that what only read is run again elsewhere, and that the next
// request is there too.
func liveFrozen(t *testing.T, w *world) {
	shards := []shardrouter.Shard{w.shard("a"), w.shard("b")}
	c := w.playerOn(shards...)
	a := w.start(shards, map[string]http.HandlerFunc{
		"/freeze": func(rw http.ResponseWriter, r *http.Request) {
			w.set(faultproxy.Freeze, "a")
			if _, err := middleware.Conn(r.Context()).ExecContext(r.Context(), "DO 1"); err != nil {
				middleware.WriteError(rw, r, err)
			}
		},
	})
	a.expect(healthcache.Up, "a", "b")
	start := time.Now()
	if status, header, _ := visit(t, c, a.url+"/freeze"); status != http.StatusOK || header.Get("X-Shard") != "b" {
		t.Errorf("status %d by %q, log %s", status, header.Get("X-Shard"), a.log)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("the statement hung for %v, log %s", d, a.log)
	}
	if status, header, _ := visit(t, c, a.url); status != http.StatusOK || header.Get("X-Shard") != "b" {
		t.Errorf("the next request: status %d by %q", status, header.Get("X-Shard"))
	}
}
