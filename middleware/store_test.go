package middleware_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	chimw "github.com/go-chi/chi/v5/middleware"
	"github.com/redis/go-redis/v9"

	"github.com/coder/websocket"
	gorilla "github.com/gorilla/websocket"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/sessionstore"
)

// site is a middleware on the real session store and a stand-in for the
// router.
type site struct {
	*rig
	redis *miniredis.Miniredis
	store *sessionstore.Manager
	lend  func(http.Handler) http.Handler
}

func newSite(t *testing.T, shards ...string) *site {
	s := &site{rig: newRig(t, shards...), redis: miniredis.RunT(t)}
	client := redis.NewClient(&redis.Options{Addr: s.redis.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	s.store = sessionstore.New(client, sessionstore.Config{})
	t.Cleanup(func() { _ = s.store.Close() })
	s.cfg.Sessions = s.store
	s.lend = middleware.NewOn(s.cfg, s.fleet, s.fleet)
	return s
}

// listen runs a mux whose /login stores a name without taking a connection,
// and whose other requests go through the middleware to h.
func (s *site) listen(h http.HandlerFunc) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/login", func(_ http.ResponseWriter, r *http.Request) { s.store.Put(r.Context(), "name", "ada") })
	mux.Handle("/", s.lend(h))
	srv := httptest.NewServer(s.store.LoadAndSave(mux))
	s.t.Cleanup(srv.Close)
	return srv
}

// player returns a client that keeps cookies.
func player(t *testing.T) *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
}

// visit sends one GET and returns status, header and body.
func visit(t *testing.T, c *http.Client, url string) (int, http.Header, string) {
	t.Helper()
	res, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(body)
}

// session returns the only session in Redis, as redis-cli would show it.
func (s *site) session() map[string]string {
	s.t.Helper()
	keys := s.redis.Keys()
	if len(keys) != 1 {
		s.t.Fatalf("%d keys in Redis, want one session: %q", len(keys), keys)
	}
	fields := map[string]string{}
	names, _ := s.redis.HKeys(keys[0])
	for _, name := range names {
		fields[name] = s.redis.HGet(keys[0], name)
	}
	return fields
}

// TestVisitorLeavesNothing holds that a route alone makes no session.
func TestVisitorLeavesNothing(t *testing.T) {
	s := newSite(t, "g/a", "g/b")
	srv := s.listen(ok)
	_, header, _ := visit(t, player(t), srv.URL)
	if header.Get("X-Shard") != "a" || header.Get("Set-Cookie") != "" || len(s.redis.Keys()) != 0 {
		t.Errorf("header %v, keys %q", header, s.redis.Keys())
	}
}

// TestRouteIsKept follows one session through its life.
func TestRouteIsKept(t *testing.T) {
	s := newSite(t, "g/a", "g/b")
	srv := s.listen(func(_ http.ResponseWriter, r *http.Request) {
		s.store.Put(r.Context(), "seen", true)
	})
	c := player(t)
	for i, step := range []struct {
		down, up string
		shard    string
		epoch    string
	}{
		{shard: "a", epoch: "1"},
		{shard: "a", epoch: "1"},
		{down: "a", shard: "b", epoch: "2"},
		{up: "a", shard: "b", epoch: "2"},
		{down: "b", shard: "a", epoch: "3"},
	} {
		s.fleet.set(step.down, true)
		s.fleet.set(step.up, false)
		_, header, _ := visit(t, c, srv.URL)
		stored := s.session()
		if header.Get("X-Shard") != step.shard || stored["db_server"] != step.shard || stored["epoch"] != step.epoch || stored["home"] != "a" {
			t.Errorf("step %d: served by %q, stored %v, want %+v", i, header.Get("X-Shard"), stored, step)
		}
	}
}

// TestRotationIsStoredLater rotates while Redis takes no writes: the request is
// served, the player stays where the rotation led, and the route is stored when
// Redis can.
func TestRotationIsStoredLater(t *testing.T) {
	s := newSite(t, "g/a", "g/b", "g/c")
	srv := s.listen(ok)
	c := player(t)
	visit(t, c, srv.URL+"/login")
	visit(t, c, srv.URL)
	s.fleet.set("a", true)
	s.fleet.onLease = func(context.Context, middleware.Route) {
		s.redis.SetError("READONLY You can't write against a read only replica.")
	}
	status, header, _ := visit(t, c, srv.URL)
	if status != http.StatusOK || header.Get("X-Shard") != "b" || !strings.Contains(s.log.String(), "stored_later=true") {
		t.Errorf("status %d, served by %q, log %s", status, header.Get("X-Shard"), s.log.String())
	}
	if got := s.session()["db_server"]; got != "a" {
		t.Errorf("stored on a read-only Redis: %q", got)
	}
	s.redis.SetError("")
	s.fleet.onLease = nil
	s.fleet.set("a", false)
	if _, header, _ := visit(t, c, srv.URL); header.Get("X-Shard") != "b" {
		t.Errorf("the next request is served by %q", header.Get("X-Shard"))
	}
	lab.Eventually(t, 5*time.Second, "the route is stored", func() bool { return s.session()["db_server"] == "b" })
	if stored := s.session(); stored["epoch"] != "2" || stored["home"] != "a" {
		t.Errorf("stored %v", stored)
	}
}

// TestLoggedInWithoutRoute holds the same on the real store, for a player who
// logged in without a connection.
func TestLoggedInWithoutRoute(t *testing.T) {
	s := newSite(t, "g/a", "g/b", "g/c")
	srv := s.listen(ok)
	c := player(t)
	visit(t, c, srv.URL+"/login")
	if _, routed := s.session()["db_server"]; routed {
		t.Fatal("the session has a route already")
	}
	const n = 30
	var arrived sync.WaitGroup
	arrived.Add(n)
	s.fleet.onLease = func(_ context.Context, rt middleware.Route) {
		if rt.Shard == "" {
			arrived.Done()
			arrived.Wait()
		}
	}
	shards := make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			_, header, _ := visit(t, c, srv.URL)
			shards[i] = header.Get("X-Shard")
		})
	}
	wg.Wait()
	stored := s.session()
	for i, shard := range shards {
		if shard != stored["db_server"] {
			t.Errorf("request %d was served by %q, the session says %v", i, shard, stored)
		}
	}
}

// TestSessionGone holds that a route claimed for a session which was destroyed
// meanwhile leaves nothing in Redis.
func TestSessionGone(t *testing.T) {
	for name, claim := range map[string]func(ctx context.Context) error{
		"rotation": func(ctx context.Context) error {
			_, err := middleware.Acquire(ctx)
			return err
		},
		"assign": func(ctx context.Context) error { return middleware.Assign(ctx, "g") },
		"move":   func(ctx context.Context) error { return middleware.Move(ctx, "b") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "g/a", "g/b")
			s.cfg.Lazy = true
			s.lend = middleware.NewOn(s.cfg, s.fleet, s.fleet)
			var status error
			srv := s.listen(func(_ http.ResponseWriter, r *http.Request) {
				s.redis.FlushAll() // a logout that another instance served
				s.fleet.set("a", true)
				status = claim(r.Context())
			})
			c := player(t)
			visit(t, c, srv.URL+"/login")
			_, header, _ := visit(t, c, srv.URL)
			if deliberate := name != "rotation"; errors.Is(status, middleware.ErrNotStored) != deliberate {
				t.Errorf("error %v", status)
			}
			if len(s.redis.Keys()) != 0 {
				t.Errorf("keys %q", s.redis.Keys())
			}
			if header.Get("Set-Cookie") != "" {
				t.Errorf("Set-Cookie %q", header.Get("Set-Cookie"))
			}
			if name == "rotation" && (header.Get("X-Shard") != "b" || !strings.Contains(s.log.String(), "detour")) {
				t.Errorf("served by %q, log %s", header.Get("X-Shard"), s.log.String())
			}
		})
	}
}

// TestWebSockets holds that an upgrade passes through every order of the session
// middleware, a logger and this one, and that the open socket holds no
// connection.
func TestWebSockets(t *testing.T) {
	echo := map[string]http.HandlerFunc{
		"coder": func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer func() { _ = conn.CloseNow() }()
			if kind, text, err := conn.Read(r.Context()); err == nil {
				_ = conn.Write(r.Context(), kind, text)
			}
			_, _, _ = conn.Read(r.Context()) // until the client closes
		},
		"gorilla": func(w http.ResponseWriter, r *http.Request) {
			conn, err := new(gorilla.Upgrader).Upgrade(w, r, nil)
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			if kind, text, err := conn.ReadMessage(); err == nil {
				_ = conn.WriteMessage(kind, text)
			}
			_, _, _ = conn.ReadMessage()
		},
	}
	for _, order := range []string{"SLM", "SML", "LSM", "LMS", "MSL", "MLS"} {
		for library, h := range echo {
			t.Run(order+" "+library, func(t *testing.T) {
				s := newSite(t, "g/a")
				layers := map[byte]func(http.Handler) http.Handler{
					'S': s.store.LoadAndSave, 'M': s.lend,
					'L': chimw.RequestLogger(&chimw.DefaultLogFormatter{Logger: slog.NewLogLogger(slog.DiscardHandler, 0), NoColor: true}),
				}
				var handler http.Handler = h
				for i := len(order) - 1; i >= 0; i-- {
					handler = layers[order[i]](handler)
				}
				srv := httptest.NewServer(handler)
				defer srv.Close()
				conn, _, err := websocket.Dial(t.Context(), srv.URL, nil) //nolint:bodyclose // the library's answer has no body to close
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.CloseNow() }()
				if err := conn.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
					t.Fatal(err)
				}
				if _, text, err := conn.Read(t.Context()); err != nil || string(text) != "hello" {
					t.Errorf("echo %q, %v", text, err)
				}
				s.fleet.mu.Lock()
				defer s.fleet.mu.Unlock()
				if s.fleet.out != 0 {
					t.Error("the socket holds a connection")
				}
			})
		}
	}
}
