package middleware_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
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

// world is what outlives one application server: MariaDB, Redis, the proxies.
type world struct {
	t       *testing.T
	server  *lab.MariaDBServer
	client  *redis.Client
	proxies map[string]*faultproxy.Proxy

	hold         time.Duration // of the applications' routers
	writeTimeout time.Duration // of their servers; 0: none
}

func newWorld(t *testing.T, server *lab.MariaDBServer) *world {
	w := &world{t: t, server: server, proxies: map[string]*faultproxy.Proxy{}, hold: shardrouter.HoldNone}
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
	log    *lab.Log

	mu         sync.Mutex
	attempts   []shardrouter.Attempt
	leaks      int
	reassigned []string
}

// start runs an application on the shards. Its handler for / answers with the
// player's gold, and h, which may be nil, with what else a test needs.
func (w *world) start(shards []shardrouter.Shard, h map[string]http.HandlerFunc) *app {
	w.t.Helper()
	a := &app{world: w, log: new(lab.Log)}
	logger := slog.New(slog.NewTextHandler(a.log, nil))
	router, err := shardrouter.New(shardrouter.Config{
		Shards: shards, HealthInterval: 100 * time.Millisecond, ConnectTimeout: time.Second,
		AcquireTimeout: 3 * time.Second, BusyTimeout: time.Second, HoldTimeout: w.hold, Logger: logger,
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
	w.t.Cleanup(func() { _ = a.store.Close() })
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
	srv := httptest.NewUnstartedServer(a.store.LoadAndSave(lend(mux)))
	srv.Config.WriteTimeout = w.writeTimeout
	srv.Start()
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

// playerOn runs a first application in which the player lands on the first
// shard, and returns the player.
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
