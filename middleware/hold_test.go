package middleware_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// liveHold holds that a request waits for the only shard there is, and is
// answered as if nothing had been when it comes back.
func liveHold(t *testing.T, w *world) {
	w.hold = time.Minute
	a := w.start([]shardrouter.Shard{w.shard("a")}, nil)
	a.expect(healthcache.Up, "a")
	w.set(faultproxy.Refuse, "a")
	type answer struct {
		status int
		body   string
	}
	done := make(chan answer, 1)
	go func() {
		status, _, body := visit(t, player(t), a.url)
		done <- answer{status, body}
	}()
	lab.Eventually(t, 10*time.Second, "the request is held", func() bool { return a.router.Stats()[0].Held == 1 })
	if n := a.router.Stats()[0].InUse; n != 0 {
		t.Errorf("%d slots of the pool are taken by a request that is held", n)
	}
	w.set(faultproxy.Pass, "a")
	if got := <-done; got.status != http.StatusOK || got.body != "0" {
		t.Errorf("status %d, body %q after the shard came back", got.status, got.body)
	}
}

// liveWriteTimeout holds that a hold ends while the server can still answer, and
// that no handler runs for a client that would not hear of it.
func liveWriteTimeout(t *testing.T, w *world) {
	w.hold, w.writeTimeout = time.Minute, 2*time.Second
	var runs atomic.Int32
	a := w.start([]shardrouter.Shard{w.shard("a")}, map[string]http.HandlerFunc{
		"/run": func(http.ResponseWriter, *http.Request) { runs.Add(1) },
	})
	a.expect(healthcache.Up, "a")
	w.set(faultproxy.Refuse, "a")
	status, header, body := visit(t, player(t), a.url+"/run")
	if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("status %d, header %v, body %q: want a 503 before the write timeout", status, header, body)
	}
	w.set(faultproxy.Pass, "a")
	a.expect(healthcache.Up, "a")
	if n := runs.Load(); n != 0 {
		t.Errorf("the handler ran %d times for a client that had its answer", n)
	}
}

// liveShutdown holds that nobody waits for a database while the process ends.
func liveShutdown(t *testing.T, w *world) {
	w.hold = time.Minute
	a := w.start([]shardrouter.Shard{w.shard("a")}, nil)
	a.expect(healthcache.Up, "a")
	w.set(faultproxy.Refuse, "a")
	done := make(chan int, 1)
	go func() {
		status, _, _ := visit(t, player(t), a.url)
		done <- status
	}()
	lab.Eventually(t, 10*time.Second, "the request is held", func() bool { return a.router.Stats()[0].Held == 1 })
	a.router.EndHolds()
	if status := <-done; status != http.StatusServiceUnavailable {
		t.Errorf("status %d at a shutdown, want 503", status)
	}
}
