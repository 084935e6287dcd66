package sessionstore_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/sessionstore"
)

// rotate claims ?shard, and has it stored later when Redis fails.
func (s *site) rotate(w http.ResponseWriter, r *http.Request) {
	route, _ := s.sessions.Route(r.Context())
	next := route.Moved(r.URL.Query().Get("shard"))
	if _, err := s.sessions.Claim(r.Context(), next); err != nil && !s.sessions.ClaimLater(r.Context(), next) {
		http.Error(w, "a detour: "+err.Error(), http.StatusBadGateway)
		return
	}
	route, _ = s.sessions.Route(r.Context())
	_, _ = w.Write([]byte(s.sessions.GetString(r.Context(), "db_server") + " " + strconv.FormatUint(route.Epoch, 10)))
}

// rotating is an instance of a site whose /rotate may fail.
func rotating(t *testing.T, rdb redis.UniversalClient) *site {
	var s *site
	s = newSite(t, rdb, map[string]http.HandlerFunc{
		"/rotate": func(w http.ResponseWriter, r *http.Request) { s.rotate(w, r) },
		"/route": func(w http.ResponseWriter, r *http.Request) {
			route, _ := s.sessions.Route(r.Context())
			_, _ = w.Write([]byte(route.Shard))
		},
	})
	t.Cleanup(func() { _ = s.sessions.Close() })
	return s
}

// TestRotationOnAReadOnlyRedis follows a rotation that is decided while Redis
// takes no writes.
func TestRotationOnAReadOnlyRedis(t *testing.T) {
	for name, args := range map[string][]string{
		"READONLY":   nil,
		"MASTERDOWN": {"--replica-serve-stale-data", "no"},
	} {
		t.Run(name, func(t *testing.T) {
			server := lab.Redis(t, lab.WithArgs(args...))
			rdb := server.Client()
			s, other := rotating(t, rdb), rotating(t, server.Client())
			g := newGate()
			b := s.browser()
			b.visit("/put?a=1")
			b.visit("/claim?shard=A")
			key := b.key()
			elsewhere := other.browser()
			elsewhere.plant(b.token())

			slow := s.slowRotation(g)
			answer := g.during(&browser{site: slow, client: b.client}, "/slow?shard=B", func() {
				if err := rdb.ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
					t.Fatal(err)
				}
			})
			if answer.status != http.StatusOK || answer.body != "B 2" {
				t.Errorf("%d %q: the request is not served", answer.status, answer.body)
			}
			if name == "READONLY" { // reads go on
				if got := elsewhere.visit("/route").body; got != "A" {
					t.Errorf("another instance follows %q, and nothing is stored", got)
				}
			}
			if err := rdb.ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
				t.Fatal(err)
			}
			lab.Eventually(t, 5*time.Second, "the route is stored", func() bool { return s.hash(key)["db_server"] == "B" })
			if hash := s.hash(key); hash["epoch"] != "2" || hash["home"] != "A" {
				t.Errorf("stored: %v", hash)
			}
			if got := elsewhere.visit("/route").body; got != "B" {
				t.Errorf("another instance follows %q", got)
			}
		})
	}
}

// slowRotation serves /slow, which waits at g and rotates, on the manager of s.
func (s *site) slowRotation(g *gate) *site {
	slow := *s
	slow.url = serve(s.t, s.sessions.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			g.wait()
			s.rotate(w, r)
		}
	})), s.log)
	return &slow
}

// owing is a session at shard A whose rotation to B could not be stored.
type owing struct {
	t      *testing.T
	s      *site
	b      *browser
	key    string
	store  *miniredis.Miniredis
	writes *noScripts
}

func newOwing(t *testing.T) *owing {
	mini, rdb := breakable(t)
	o := &owing{t: t, s: rotating(t, rdb), store: mini, writes: new(noScripts)}
	rdb.AddHook(o.writes)
	o.b = o.s.browser()
	o.b.visit("/put?a=1")
	o.b.visit("/claim?shard=A")
	o.key = o.b.key()
	o.writes.fail.Store(true)
	if got := o.b.visit("/rotate?shard=B").body; got != "B 2" {
		t.Fatalf("rotated to %q", got)
	}
	return o
}

// noScripts answers scripts as a read-only replica does, while fail is set.
type noScripts struct {
	lab.NoHook
	fail atomic.Bool
}

func (n *noScripts) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !n.fail.Load() || !strings.HasPrefix(cmd.Name(), "eval") {
			return next(ctx, cmd)
		}
		err := redisError("READONLY You can't write against a read only replica.")
		cmd.SetErr(err)
		return err
	}
}

func TestOwedRoutes(t *testing.T) {
	// Each starts with a session at shard A, whose rotation to B is owed.
	tests := []struct {
		name, reason string
		meanwhile    func(t *testing.T, o *owing)
		want         string // the shard in Redis afterwards; "" for no session
	}{
		{"undisturbed", "it is stored", func(*testing.T, *owing) {}, "B"},
		{"a newer route", "it stands", func(_ *testing.T, o *owing) {
			o.store.HSet(o.key, "db_server", "C", "epoch", "2", "nonce", "another")
			if got := o.b.visit("/route").body; got != "C" {
				o.t.Errorf("the newer route is not followed: %q", got)
			}
		}, "C"},
		{"the same epoch and shard, another writer", "the route was not decided on that", func(_ *testing.T, o *owing) {
			o.store.HSet(o.key, "nonce", "another")
		}, "A"},
		{"logged out", "nothing is revived", func(_ *testing.T, o *owing) { o.store.Del(o.key) }, ""},
		{"later requests", "this process serves by what it owes", func(_ *testing.T, o *owing) {
			if got := o.b.visit("/route").body + o.b.visit("/get?k=db_server").body; got != "BB" {
				o.t.Errorf("the next request goes to %q", got)
			}
		}, "B"},
		{"a second rotation", "the later one is stored, as one step", func(_ *testing.T, o *owing) {
			if got := o.b.visit("/rotate?shard=C").body; got != "C 2" {
				o.t.Errorf("rotated to %q", got)
			}
		}, "C"},
		{"closed", "what was owed is lost", func(_ *testing.T, o *owing) {
			_ = o.s.sessions.Close()
			if got := o.b.visit("/route").body; got != "A" {
				o.t.Errorf("after Close: %q", got)
			}
			if p := o.b.visit("/rotate?shard=B"); p.status != http.StatusBadGateway {
				o.t.Errorf("rotated after Close: %d", p.status)
			}
		}, "A"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := newOwing(t)
			test.meanwhile(t, o)
			o.writes.fail.Store(false)
			lab.Eventually(t, 5*time.Second, "nothing is owed", func() bool { return o.s.sessions.Owed() == 0 })
			if got := o.store.HGet(o.key, "db_server"); got != test.want {
				t.Errorf("stored is %q, want %q: %s", got, test.want, test.reason)
			}
		})
	}
}

func TestRenewalTakesAnOwedRouteAlong(t *testing.T) {
	o := newOwing(t)
	m := o.s.sessions
	ctx := load(t, m, o.b.token())
	if err := m.RenewToken(ctx); err != nil {
		t.Fatal(err)
	}
	o.writes.fail.Store(false)
	renewed, _, err := m.Commit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := sessionstore.Route{Shard: "B", Home: "A", Epoch: 2}
	if r, _ := m.Route(load(t, m, renewed)); r != want {
		t.Errorf("route is %+v, want %+v", r, want)
	}
	lab.Eventually(t, 5*time.Second, "nothing is owed", func() bool { return m.Owed() == 0 })
	if keys := o.store.Keys(); len(keys) != 1 {
		t.Errorf("keys: %v", keys)
	}
}

func TestClaimLaterNeedsAStoredSession(t *testing.T) {
	m, token := stored(t, miniClient(t))
	next := sessionstore.Route{Shard: "a", Home: "a"}
	if m.ClaimLater(t.Context(), next) || m.ClaimLater(load(t, m, ""), next) || m.ClaimLater(load(t, m, token), sessionstore.Route{}) {
		t.Error("kept a route for nothing")
	}
	ctx := load(t, m, token)
	if err := m.Destroy(ctx); err != nil {
		t.Fatal(err)
	}
	if m.ClaimLater(ctx, next) {
		t.Error("kept a route for a session that is gone")
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}
