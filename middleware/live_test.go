package middleware_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/shardrouter"
)

// TestLive runs the cases that need a real server. All shards are one MariaDB
// behind a proxy each, which can break: the shards hold the same rows.
func TestLive(t *testing.T) {
	server := lab.MariaDB(t)
	lab.Exec(t, server.DSN(), "CREATE TABLE gold (player INT PRIMARY KEY, amount INT NOT NULL)")
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, w *world)
	}{
		{"rotation inside the request", liveRotation},
		{"policy fail", livePolicyFail},
		{"groups", liveGroups},
		{"boot", liveBoot},
		{"shard removed", liveRemoved},
		{"clients abort", liveAborts},
		{"leaks", liveLeaks},
		{"second connection", liveNested},
		{"event streams", liveStreams},
		{"transaction moves", liveTx},
		{"frozen under a statement", liveFrozen},
		{"replay", liveReplay},
		{"held", liveHold},
		{"held and the write timeout", liveWriteTimeout},
		{"held and the shutdown", liveShutdown},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, newWorld(t, server)) })
	}
}

// liveRotation holds that a request whose shard and the next one are dead, which
// nobody knows yet, ends on the third, with one dial of each at most.
func liveRotation(t *testing.T, w *world) {
	shards := []shardrouter.Shard{w.shard("a"), w.shard("b"), w.shard("c")}
	c := w.playerOn(shards...)
	a := w.start(shards, nil)
	a.expect(healthcache.Up, "a", "b", "c")
	w.set(faultproxy.Cut, "a", "b")
	status, header, body := visit(t, c, a.url)
	if status != http.StatusOK || header.Get("X-Shard") != "c" || body != "0" {
		t.Errorf("status %d by %q, body %q", status, header.Get("X-Shard"), body)
	}
	if rt := w.route(); rt["db_server"] != "c" || rt["home"] != "a" || rt["epoch"] != "2" {
		t.Errorf("the session says %v", rt)
	}
	dials := map[string]int{}
	a.note(func() {
		for _, at := range a.attempts {
			dials[at.Shard]++
		}
	})
	if dials["a"] > 1 || dials["b"] > 1 || dials["c"] > 0 {
		t.Errorf("failed attempts %v", dials)
	}
}

// livePolicyFail holds that a shard which must not be left is not left.
func livePolicyFail(t *testing.T, w *world) {
	shards := []shardrouter.Shard{
		w.shard("a", func(s *shardrouter.Shard) { s.OnFailure = shardrouter.OnFailureFail }), w.shard("b"),
	}
	c := w.playerOn(shards...)
	before := w.route()
	a := w.start(shards, nil)
	w.set(faultproxy.Cut, "a")
	a.expect(healthcache.Down, "a")
	status, header, body := visit(t, c, a.url)
	if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("status %d, header %v", status, header)
	}
	if strings.Contains(body, "127.0.0.1") || strings.Contains(body, "refused") {
		t.Errorf("the client is told %q", body)
	}
	if after := w.route(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the session changed from %v to %v", before, after)
	}
}

// liveGroups holds that the players of a dead group are not served by another.
func liveGroups(t *testing.T, w *world) {
	shards := []shardrouter.Shard{
		w.shard("a", inGroup("east")), w.shard("b", inGroup("east")), w.shard("c", inGroup("west")),
	}
	c := w.playerOn(shards...)
	a := w.start(shards, map[string]http.HandlerFunc{
		"/west": func(rw http.ResponseWriter, r *http.Request) {
			if err := middleware.Assign(r.Context(), "west"); err != nil {
				middleware.WriteError(rw, r, err)
			}
		},
	})
	w.set(faultproxy.Cut, "a", "b")
	for range 3 {
		if status, header, _ := visit(t, c, a.url); status != http.StatusServiceUnavailable || header.Get("X-Shard") != "" {
			t.Errorf("status %d by %q", status, header.Get("X-Shard"))
		}
	}
	w.set(faultproxy.Pass, "a", "b")
	a.expect(healthcache.Up, "a")
	if status, header, _ := visit(t, c, a.url+"/west"); status != http.StatusOK || header.Get("X-Shard") != "c" {
		t.Errorf("assigned to %q with status %d", header.Get("X-Shard"), status)
	}
	if rt := w.route(); rt["db_server"] != "c" || rt["home"] != "c" || rt["group"] != "west" {
		t.Errorf("the session says %v", rt)
	}
}

// liveBoot holds that shards which are down at the start do not stop it.
func liveBoot(t *testing.T, w *world) {
	shards := []shardrouter.Shard{w.shard("a"), w.shard("b")}
	w.set(faultproxy.Cut, "a")
	one := w.start(shards, nil)
	if status, header, _ := visit(t, player(t), one.url); status != http.StatusOK || header.Get("X-Shard") != "b" {
		t.Errorf("one down: status %d by %q", status, header.Get("X-Shard"))
	}
	w.set(faultproxy.Cut, "b")
	all := w.start(shards, nil)
	if status, header, _ := visit(t, player(t), all.url); status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("all down: status %d, header %v", status, header)
	}
	if strings.Contains(all.log.String(), "app-secret") {
		t.Error("the log holds the password")
	}
	w.set(faultproxy.Pass, "a", "b")
	lab.Eventually(t, 10*time.Second, "served again", func() bool {
		status, _, _ := visit(t, player(t), all.url)
		return status == http.StatusOK
	})
}

// liveRemoved holds that a session whose shard is not in the list any more is
// assigned another, visibly.
func liveRemoved(t *testing.T, w *world) {
	c := w.playerOn(w.shard("gone"), w.shard("b"))
	a := w.start([]shardrouter.Shard{w.shard("b"), w.shard("c")}, nil)
	status, header, _ := visit(t, c, a.url)
	if status != http.StatusOK || header.Get("X-Shard") != "b" {
		t.Errorf("status %d by %q", status, header.Get("X-Shard"))
	}
	if rt := w.route(); rt["db_server"] != "b" || rt["home"] != "gone" || rt["epoch"] != "2" {
		t.Errorf("the session says %v", rt)
	}
	if !strings.Contains(a.log.String(), "from=gone to=b") || len(a.reassigned) != 1 || a.reassigned[0] != "gone to b" {
		t.Errorf("observed %v, log %s", a.reassigned, a.log)
	}
}

// liveAborts holds that what clients break off says nothing about the shard.
func liveAborts(t *testing.T, w *world) {
	const slow, hasty = 50, 1000
	entered := make(chan struct{}, slow)
	a := w.start([]shardrouter.Shard{w.shard("a"), w.shard("b")}, map[string]http.HandlerFunc{
		"/slow": func(rw http.ResponseWriter, r *http.Request) {
			entered <- struct{}{}
			_, err := middleware.Conn(r.Context()).ExecContext(r.Context(), "DO SLEEP(20)")
			middleware.WriteError(rw, r, err)
		},
	})
	a.expect(healthcache.Up, "a", "b")
	c := player(t)
	visit(t, c, a.url+"/visit")
	before := w.route()

	ctx, leave := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range slow {
		wg.Go(func() { abort(ctx, t, c, a.url+"/slow") })
	}
	for range slow {
		<-entered
	}
	leave()
	for i := range hasty {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%5)*time.Millisecond)
			defer cancel()
			abort(ctx, t, c, a.url)
		})
	}
	wg.Wait()
	a.noLeaseOut()
	if status, header, _ := visit(t, c, a.url); status != http.StatusOK || header.Get("X-Shard") != "a" {
		t.Errorf("status %d by %q", status, header.Get("X-Shard"))
	}
	if after := w.route(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the session changed from %v to %v", before, after)
	}
	if state := a.router.Health().View("a").State; state != healthcache.Up {
		t.Errorf("the shard is %s", state)
	}
	for line := range strings.Lines(a.log.String()) {
		trouble := strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR")
		// Two shards of one plain server are no proved copies, which is said.
		if trouble && !strings.Contains(line, "hold the same rows") {
			t.Errorf("the log has %s", line)
		}
	}
}

// abort sends a request that ends with ctx, if not before.
func abort(ctx context.Context, t *testing.T, c *http.Client, url string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Error(err)
		return
	}
	if res, err := c.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
}
