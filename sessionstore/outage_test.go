package sessionstore_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/sessionstore"
)

func TestFlushedScriptsHeal(t *testing.T) {
	rdb := lab.Redis(t).Client()
	s := newSiteWith(t, rdb, sessionstore.Config{}, nil)
	b := s.browser()
	for _, path := range []string{"/put?a=1", "/put?a=2", "/claim?shard=A", "/claim?shard=B", "/renew", "/put?a=3"} {
		if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if p := b.visit(path); p.status != http.StatusOK {
			t.Errorf("%s: %d %s", path, p.status, p.body)
		}
	}
	hash := s.hash(b.key())
	if hash["d:a"] != text("3") || hash["db_server"] != "B" || hash["epoch"] != "2" {
		t.Errorf("session holds %v", hash)
	}
}

func TestFrozenRedis(t *testing.T) {
	server := lab.Redis(t)
	rdb := server.Client()
	s := newSiteWith(t, rdb, sessionstore.Config{Timeout: 200 * time.Millisecond}, nil)
	b := s.browser()
	b.visit("/put?a=1")
	server.Freeze()
	start := time.Now()
	wantUnavailable(t, b.visit("/get?k=a"))
	if waited := time.Since(start); waited > 2*time.Second {
		t.Errorf("a silent Redis cost %v", waited)
	}
	if p := s.browser().visit("/get?k=a"); p.status != http.StatusOK {
		t.Errorf("without a cookie: %d", p.status)
	}
	server.Thaw()
	lab.Eventually(t, 5*time.Second, "the session is back", func() bool { return b.visit("/get?k=a").body == "1" })
}

func TestDeadRedis(t *testing.T) {
	server := lab.Redis(t, lab.WithArgs("--appendonly", "yes", "--appendfsync", "always"))
	s := newSiteWith(t, server.Client(), sessionstore.Config{}, nil)
	b := s.browser()
	b.visit("/put?a=1")
	server.Kill()
	wantUnavailable(t, b.visit("/get?k=a"))
	wantUnavailable(t, s.browser().visit("/put?a=1"))
	server.Restart()
	lab.Eventually(t, 5*time.Second, "the player is still logged in", func() bool { return b.visit("/get?k=a").body == "1" })
}

func TestNewPanicsOnNonsense(t *testing.T) {
	rdb := miniClient(t)
	for name, make := range map[string]func(){
		"no client":        func() { sessionstore.New(nil, sessionstore.Config{}) },
		"negative timeout": func() { sessionstore.New(rdb, sessionstore.Config{Timeout: -1}) },
		"negative retry":   func() { sessionstore.New(rdb, sessionstore.Config{RetryAfter: -1}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			make()
		})
	}
}

func TestErrorsOfRedis(t *testing.T) {
	mini, rdb := breakable(t)
	m, token := stored(t, rdb)
	ctx := load(t, m, token)
	m.Put(ctx, "a", 1)
	renewing := load(t, m, token)
	if err := m.RenewToken(renewing); err != nil {
		t.Fatal(err)
	}
	past := load(t, m, token)
	m.SetDeadline(past, time.Now().Add(-time.Second))
	fresh := load(t, m, "")
	m.Put(fresh, "a", 1)

	mini.SetError("LOADING")
	for name, call := range map[string]func() error{
		"save":             func() error { _, _, err := m.Commit(ctx); return err },
		"renew":            func() error { _, _, err := m.Commit(renewing); return err },
		"expire":           func() error { _, _, err := m.Commit(past); return err },
		"create":           func() error { _, _, err := m.Commit(fresh); return err },
		"destroy":          func() error { return m.Destroy(ctx) },
		"destroy, renewed": func() error { return m.Destroy(renewing) },
		"load":             func() error { _, err := m.Load(t.Context(), token); return err },
		"load, idle": func() error {
			idle := sessionstore.New(rdb, sessionstore.Config{})
			idle.IdleTimeout = time.Hour
			_, err := idle.Load(t.Context(), token)
			return err
		},
	} {
		if err := call(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	mini.SetError("")
	if err := m.Destroy(ctx); err != nil {
		t.Error(err)
	}
	if keys := mini.Keys(); len(keys) != 0 {
		t.Errorf("left: %v", keys)
	}
}

func TestStoreWithoutContext(t *testing.T) {
	rdb := miniClient(t)
	m, token := stored(t, rdb)
	packed, err := m.Codec.Encode(time.Now().Add(time.Hour), map[string]any{"a": "1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.Store.Find(token); err != sessionstore.ErrNotLoaded { //nolint:errorlint // exactly this one
		t.Errorf("Find: %v", err)
	}
	if err := m.Store.Commit(token, packed, time.Now().Add(time.Hour)); err != sessionstore.ErrNotLoaded { //nolint:errorlint // exactly this one
		t.Errorf("Commit over a session: %v", err)
	}
	if err := m.Store.Commit("new", packed, time.Now().Add(time.Hour)); err != nil {
		t.Errorf("Commit: %v", err)
	}
	if err := m.Store.Commit("new", []byte("?"), time.Now().Add(time.Hour)); err == nil {
		t.Error("Commit of garbage")
	}
	if err := m.Store.Delete(token); err != nil {
		t.Error(err)
	}
	if n := rdb.DBSize(t.Context()).Val(); n != 1 {
		t.Errorf("%d keys", n)
	}
}
