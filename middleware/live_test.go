package middleware_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/sessionstore"
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
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, newWorld(t, server)) })
	}
}

// world is what outlives one application server: MariaDB, Redis, the proxies.
type world struct {
	t       *testing.T
	server  *lab.MariaDBServer
	client  *redis.Client
	proxies map[string]*faultproxy.Proxy
}

func newWorld(t *testing.T, server *lab.MariaDBServer) *world {
	w := &world{t: t, server: server, proxies: map[string]*faultproxy.Proxy{}}
	w.client = redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = w.client.Close() })
	lab.Exec(t, server.DSN(), "REPLACE INTO gold VALUES (1, 0)")
	return w
}

// shard makes the configuration of one shard behind its proxy.
func (w *world) shard(name string, change ...func(*shardrouter.Shard)) shardrouter.Shard {
	if w.proxies[name] == nil {
		w.proxies[name] = faultproxy.New(w.t, w.server.Addr())
	}
	s := shardrouter.Shard{Name: name, DSN: shardrouter.DSN(w.server.DSNAt(w.proxies[name].Addr()))}
	for _, c := range change {
		c(&s)
	}
	return s
}

func inGroup(group string) func(*shardrouter.Shard) {
	return func(s *shardrouter.Shard) { s.Group = group }
}

func maxConns(n int) func(*shardrouter.Shard) {
	return func(s *shardrouter.Shard) { s.MaxConns = n }
}

func (w *world) set(mode faultproxy.Mode, shards ...string) {
	for _, s := range shards {
		w.proxies[s].SetMode(mode)
	}
}

// app is one application server.
type app struct {
	*world
	router *shardrouter.Router
	store  *sessionstore.Manager
	url    string
	log    *logBook

	mu         sync.Mutex
	attempts   []shardrouter.Attempt
	leaks      int
	reassigned []string
}

// logBook is a log that several goroutines write and the test reads.
type logBook struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs an application on the shards. Its handler for / answers with the
// player's gold, and h, which may be nil, with what else a test needs.
func (w *world) start(shards []shardrouter.Shard, h map[string]http.HandlerFunc) *app {
	w.t.Helper()
	a := &app{world: w, log: &logBook{}}
	logger := slog.New(slog.NewTextHandler(a.log, nil))
	router, err := shardrouter.New(shardrouter.Config{
		Shards: shards, HealthInterval: 100 * time.Millisecond, ConnectTimeout: time.Second,
		AcquireTimeout: 3 * time.Second, BusyTimeout: time.Second, Logger: logger,
		Observer: shardrouter.Observer{
			Attempt: func(at shardrouter.Attempt) { a.note(func() { a.attempts = append(a.attempts, at) }) },
			Leaked:  func(string) { a.note(func() { a.leaks++ }) },
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	a.router = router
	a.store = sessionstore.New(w.client, sessionstore.Config{Logger: logger})
	lend := middleware.New(middleware.Config{
		Sessions: a.store, Router: router, ShardHeader: "X-Shard", Logger: logger,
		Observer: middleware.Observer{
			Reassigned: func(from, to string) { a.note(func() { a.reassigned = append(a.reassigned, from+" to "+to) }) },
		},
	})
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", a.gold)
	mux.HandleFunc("/visit", func(_ http.ResponseWriter, r *http.Request) { a.store.Put(r.Context(), "name", "ada") })
	for path, fn := range h {
		mux.HandleFunc(path, fn)
	}
	srv := httptest.NewServer(a.store.LoadAndSave(lend(mux)))
	a.url = srv.URL
	w.t.Cleanup(func() {
		srv.Close()
		a.noLeaseOut()
		_ = router.Close() // reports the connections that the test broke
	})
	return a
}

func (a *app) note(fn func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fn()
}

// noLeaseOut holds that every lease comes back.
func (a *app) noLeaseOut() {
	a.t.Helper()
	lab.Eventually(a.t, 5*time.Second, "all leases are back", func() bool {
		for _, s := range a.router.Stats() {
			if s.InUse != 0 || s.Waiting != 0 {
				return false
			}
		}
		return true
	})
}

// gold answers with what the player has.
func (a *app) gold(w http.ResponseWriter, r *http.Request) {
	var amount int
	err := middleware.Conn(r.Context()).QueryRowContext(r.Context(), "SELECT amount FROM gold WHERE player = 1").Scan(&amount)
	if err != nil {
		middleware.WriteError(w, r, err)
		return
	}
	_, _ = fmt.Fprint(w, amount)
}

// expect waits until the router knows the shards to be in state.
func (a *app) expect(state healthcache.State, shards ...string) {
	a.t.Helper()
	for _, s := range shards {
		lab.Eventually(a.t, 10*time.Second, s+" is "+string(state), func() bool {
			return a.router.Health().View(s).State == state
		})
	}
}

// route returns the fields of the only session in Redis.
func (w *world) route() map[string]string {
	w.t.Helper()
	keys, err := w.client.Keys(w.t.Context(), "session:*").Result()
	if err != nil || len(keys) != 1 {
		w.t.Fatalf("%d sessions in Redis (%v), want one", len(keys), err)
	}
	fields, err := w.client.HGetAll(w.t.Context(), keys[0]).Result()
	if err != nil {
		w.t.Fatal(err)
	}
	return fields
}

// on runs a first application in which the player lands on the first shard,
// and returns the player.
func (w *world) playerOn(shards ...shardrouter.Shard) *http.Client {
	w.t.Helper()
	c := player(w.t)
	a := w.start(shards, nil)
	a.expect(healthcache.Up, shards[0].Name)
	if _, header, _ := visit(w.t, c, a.url+"/visit"); header.Get("X-Shard") != shards[0].Name {
		w.t.Fatalf("the player landed on %q", header.Get("X-Shard"))
	}
	return c
}

// liveRotation is T1: A and B are dead and nobody knows it yet; one request
// ends on C, with one dial of each at most.
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

// livePolicyFail is T4.
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

// liveGroups is T5: the players of a dead group are not served by another.
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

// liveBoot is the first half of M6: shards that are down at the start.
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

// liveRemoved is the second half of M6: the session names a shard that is not
// in the list any more.
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

// liveAborts is M1: what clients break off says nothing about the shard.
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
	for _, level := range []string{"level=WARN", "level=ERROR"} {
		if strings.Contains(a.log.String(), level) {
			t.Errorf("the log has %s: %s", level, a.log)
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

// liveLeaks is M7: what a handler leaves open holds nothing up, and is not
// there for the next one.
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

// liveNested is M8: a handler that asks for a second connection of a full
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

// liveStreams is M13: event streams leave the pool to the others.
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
// probe's time, and that the next request is elsewhere.
func liveFrozen(t *testing.T, w *world) {
	shards := []shardrouter.Shard{w.shard("a"), w.shard("b")}
	c := w.playerOn(shards...)
	a := w.start(shards, map[string]http.HandlerFunc{
		"/freeze": func(rw http.ResponseWriter, r *http.Request) {
			w.set(faultproxy.Freeze, "a")
			_, err := middleware.Conn(r.Context()).ExecContext(r.Context(), "DO 1")
			middleware.WriteError(rw, r, err)
		},
	})
	a.expect(healthcache.Up, "a", "b")
	start := time.Now()
	if status, _, _ := visit(t, c, a.url+"/freeze"); status != http.StatusServiceUnavailable {
		t.Errorf("status %d, log %s", status, a.log)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("the statement hung for %v, log %s", d, a.log)
	}
	if status, header, _ := visit(t, c, a.url); status != http.StatusOK || header.Get("X-Shard") != "b" {
		t.Errorf("the next request: status %d by %q", status, header.Get("X-Shard"))
	}
}
