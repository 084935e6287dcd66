package sessionstore_test

import (
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/sessionstore"
)

// TestRenewalInterrupted fails Redis between the two halves of a renewal. The
// player keeps the old token and its session, and the handler may try again.
func TestRenewalInterrupted(t *testing.T) {
	mini, rdb := breakable(t)
	fail := new(failing)
	fail.passes.Store(-1)
	rdb.AddHook(fail)
	m, token := stored(t, rdb)
	ctx := load(t, m, token)
	if err := m.RenewToken(ctx); err != nil {
		t.Fatal(err)
	}
	fail.passes.Store(2) // the take's EVALSHA and EVAL; the create fails
	if _, _, err := m.Commit(ctx); err == nil {
		t.Fatal("saved on a dead Redis")
	}
	if again := load(t, m, token); m.GetString(again, "uid") != "7" {
		t.Error("the failed renewal cost the login")
	}
	renewed, _, err := m.Commit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.GetString(load(t, m, renewed), "uid"); got != "7" {
		t.Errorf("uid is %q", got)
	}
	if m.Exists(load(t, m, token), "uid") {
		t.Error("the old token lives on")
	}
	if keys := mini.Keys(); len(keys) != 1 {
		t.Errorf("keys: %v", keys)
	}
}

// TestRenewalThatDied is about a process that died, or lost Redis for longer,
// within a renewal: its mark holds everybody off for some seconds, with an
// error in the place of an empty session, and then the session is back.
func TestRenewalThatDied(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		m, token := stored(t, rdb)
		key := "session:" + m.Key(load(t, m, token))
		slow := load(t, m, token)
		set(t, rdb, key, "renewing", mark(time.Minute))
		if _, err := m.Load(t.Context(), token); !errors.Is(err, sessionstore.ErrRenewing) {
			t.Errorf("load during the renewal: %v", err)
		}
		m.Put(slow, "a", "1")
		if _, _, err := m.Commit(slow); !errors.Is(err, sessionstore.ErrSessionGone) {
			t.Errorf("save during the renewal: %v", err)
		}
		set(t, rdb, key, "renewing", mark(-time.Millisecond))
		ctx := load(t, m, token)
		if got := m.GetString(ctx, "uid"); got != "7" {
			t.Errorf("uid is %q after the mark's end", got)
		}
		if err := m.RenewToken(ctx); err != nil {
			t.Fatal(err)
		}
		renewed, _, err := m.Commit(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.GetString(load(t, m, renewed), "uid"); got != "7" {
			t.Errorf("uid is %q after a second renewal", got)
		}
	})
}

// TestRenewalKeepsWhatTheRequestStored: when the old session was logged out
// meanwhile, what the renewing request put goes on, also a value that was
// there before, and nothing else does.
func TestRenewalKeepsWhatTheRequestStored(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		var s *site
		g := newGate()
		s = newSite(t, rdb, map[string]http.HandlerFunc{"/slow": func(w http.ResponseWriter, r *http.Request) {
			g.wait()
			s.must(s.sessionsRenew)(w, r)
			s.put(w, r)
			s.sessions.Put(r.Context(), "taken back", 1)
			s.sessions.Remove(r.Context(), "taken back")
		}})
		s.sessions.Atomic("uid", "role")
		b := s.browser()
		b.visit("/put?uid=7&role=admin&theme=dark&name=Ada")
		g.during(b, "/slow?uid=8&theme=dark", func() { b.visit("/logout") })
		hash := s.hash(b.key())
		for field, want := range map[string]string{"d:uid": text("8"), "d:theme": text("dark"), "d:role": "", "d:name": "", "d:taken back": ""} {
			if hash[field] != want {
				t.Errorf("field %s is %q, want %q", field, hash[field], want)
			}
		}
	})
}

// TestRenewalThatCannotBury: the new session is stored and the old one cannot
// be deleted. The player goes on with the new token.
func TestRenewalThatCannotBury(t *testing.T) {
	_, rdb := breakable(t)
	_, token := stored(t, rdb)
	m := sessionstore.New(rdb, sessionstore.Config{Logger: slog.New(slog.DiscardHandler)})
	ctx := load(t, m, token)
	if err := m.RenewToken(ctx); err != nil {
		t.Fatal(err)
	}
	rdb.AddHook(noDeletes{})
	renewed, _, err := m.Commit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.GetString(load(t, m, renewed), "uid"); got != "7" {
		t.Errorf("uid is %q", got)
	}
	if _, err := m.Load(t.Context(), token); !errors.Is(err, sessionstore.ErrRenewing) {
		t.Errorf("the old token: %v", err)
	}
}
