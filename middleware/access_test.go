package middleware_test

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/shardrouter"
)

// panicOf returns what fn panics with, "" if it does not.
func panicOf(fn func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = v.(string)
		}
	}()
	fn()
	return ""
}

func TestNotMounted(t *testing.T) {
	ctx := context.Background()
	for name, fn := range map[string]func(){
		"TxAnswer": func() {
			_, _ = middleware.TxAnswer(ctx, shardrouter.TxOptions{}, nil)
		},
		"Conn":    func() { middleware.Conn(ctx) },
		"Acquire": func() { _, _ = middleware.Acquire(ctx) },
		"Tx":      func() { _ = middleware.Tx(ctx, nil) },
		"Shard":   func() { middleware.Shard(ctx) },
		"Home":    func() { middleware.Home(ctx) },
		"Rotated": func() { middleware.Rotated(ctx) },
		"Release": func() { middleware.Release(ctx) },
		"Assign":  func() { _ = middleware.Assign(ctx, "g") },
		"Move":    func() { _ = middleware.Move(ctx, "a") },
	} {
		if text := panicOf(fn); !strings.Contains(text, name) || !strings.Contains(text, "is middleware.New mounted") {
			t.Errorf("%s panics with %q", name, text)
		}
	}
}

func TestLazy(t *testing.T) {
	rg := newRig(t, "g/a", "g/b")
	rg.cfg.Lazy = true
	rec := rg.get(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if text := panicOf(func() { middleware.Conn(ctx) }); !strings.Contains(text, "call Acquire first") {
			t.Errorf("Conn panics with %q", text)
		}
		if s := middleware.Shard(ctx); s != "" || rg.fleet.out != 0 {
			t.Errorf("shard %q and %d leases before Acquire", s, rg.fleet.out)
		}
		first, err := middleware.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		second, err := middleware.Acquire(ctx)
		if err != nil || second != first || middleware.Conn(ctx) != first {
			t.Errorf("another connection from the second Acquire (%v)", err)
		}
		w.WriteHeader(http.StatusOK)
	})
	if got := rec.Header().Get("X-Shard"); got != "a" {
		t.Errorf("X-Shard %q", got)
	}
	if rec := rg.get(ok); rec.Header().Get("X-Shard") != "" {
		t.Error("an answer that used no shard names one")
	}
}

func TestLazyUnused(t *testing.T) {
	rg := newRig(t, "g/a")
	rg.cfg.Lazy = true
	rg.get(ok)
	if len(rg.fleet.leases)+len(rg.sessions.claims) != 0 {
		t.Error("a request that asked for nothing took something")
	}
}

// TestAcquireError holds that in lazy mode an error is the handler's to answer.
func TestAcquireError(t *testing.T) {
	rg := newRig(t, "g/a")
	rg.cfg.Lazy = true
	rg.fleet.set("a", true)
	rec := rg.get(func(w http.ResponseWriter, r *http.Request) {
		_, err := middleware.Acquire(r.Context())
		if err == nil {
			t.Fatal("a connection of a dead shard")
		}
		middleware.WriteError(w, r, err)
	})
	if rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") == "" {
		t.Errorf("status %d, header %v", rec.Code, rec.Header())
	}
}

// TestAcquireAtOnce holds that goroutines of one handler share one lease, and
// that one who cannot wait does not have to.
func TestAcquireAtOnce(t *testing.T) {
	rg := newRig(t, "g/a")
	rg.cfg.Lazy = true
	entered, release := make(chan struct{}), make(chan struct{})
	rg.fleet.onLease = func(context.Context, middleware.Route) {
		close(entered) // a second lease would close it again
		<-release
	}
	rg.get(func(_ http.ResponseWriter, r *http.Request) {
		conns := make([]*sql.Conn, 8)
		var wg sync.WaitGroup
		for i := range conns {
			wg.Go(func() { conns[i], _ = middleware.Acquire(r.Context()) })
		}
		<-entered
		brief, cancel := context.WithTimeout(r.Context(), time.Millisecond)
		defer cancel()
		if _, err := middleware.Acquire(brief); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a waiter whose time is over got %v", err)
		}
		close(release)
		wg.Wait()
		for i, c := range conns {
			if c == nil || c != conns[0] {
				t.Errorf("goroutine %d got %p, the first %p", i, c, conns[0])
			}
		}
	})
}

func TestRelease(t *testing.T) {
	rg := newRig(t, "g/a", "g/b")
	rg.get(func(_ http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		first := middleware.Conn(ctx)
		middleware.Release(ctx)
		middleware.Release(ctx)
		if rg.fleet.out != 0 {
			t.Error("the connection is still out")
		}
		if ctx.Err() != nil {
			t.Error("the handler's context ended with the lease")
		}
		if text := panicOf(func() { middleware.Conn(ctx) }); !strings.Contains(text, "call Acquire") {
			t.Errorf("Conn panics with %q", text)
		}
		if got := middleware.Shard(ctx); got != "a" {
			t.Errorf("shard %q after Release", got)
		}
		second, err := middleware.Acquire(ctx)
		if err != nil || second == first || middleware.Shard(ctx) != "a" {
			t.Errorf("Acquire after Release: %v, the same connection: %v, shard %q", err, second == first, middleware.Shard(ctx))
		}
	})
	if n := len(rg.sessions.claims); n != 1 {
		t.Errorf("%d claims, want the first assignment's only", n)
	}
}

// TestAfterTheEnd holds what a goroutine meets that outlives its request.
func TestAfterTheEnd(t *testing.T) {
	rg := newRig(t, "g/a")
	var ctx context.Context
	rg.get(func(_ http.ResponseWriter, r *http.Request) { ctx = r.Context() })
	if _, err := middleware.Acquire(ctx); !errors.Is(err, middleware.ErrRequestEnded) {
		t.Errorf("Acquire: %v", err)
	}
	if err := middleware.Move(ctx, "a"); !errors.Is(err, middleware.ErrRequestEnded) {
		t.Errorf("Move: %v", err)
	}
	if err := middleware.Conn(ctx).PingContext(context.Background()); !errors.Is(err, sql.ErrConnDone) {
		t.Errorf("the old connection answers %v", err)
	}
}

// TestEndWhileAcquiring holds that a lease which arrives after the handler has
// returned goes straight back.
func TestEndWhileAcquiring(t *testing.T) {
	rg := newRig(t, "g/a")
	rg.cfg.Lazy = true
	entered, release := make(chan struct{}), make(chan struct{})
	rg.fleet.onLease = func(context.Context, middleware.Route) {
		close(entered)
		<-release
	}
	result := make(chan error)
	rg.get(func(_ http.ResponseWriter, r *http.Request) {
		go func() {
			_, err := middleware.Acquire(context.WithoutCancel(r.Context()))
			result <- err
		}()
		<-entered
	})
	close(release)
	if err := <-result; !errors.Is(err, middleware.ErrRequestEnded) {
		t.Errorf("Acquire: %v", err)
	}
	if rg.fleet.out != 0 {
		t.Error("the connection is still out")
	}
}

// A lease whose connection is gone is not handed out again.
func TestAcquireReplacesADeadLease(t *testing.T) {
	rg := newRig(t, "g/a")
	rg.get(func(_ http.ResponseWriter, r *http.Request) {
		first := middleware.Conn(r.Context())
		rg.fleet.last.dead.Store(true)
		second, err := middleware.Acquire(r.Context())
		if err != nil || second == first {
			t.Errorf("got the same connection, or %v", err)
		}
		if middleware.Conn(r.Context()) != second {
			t.Error("Conn gives another connection than Acquire")
		}
	})
}
