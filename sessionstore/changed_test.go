package sessionstore_test

import (
	"context"
	"encoding/gob"
	"testing"
	"time"

	"github.com/shardhop/shardhop/sessionstore"
)

type purse struct{ Coins map[string]int }

func init() { gob.Register(purse{}) }

// TestChanged holds that everything which a request can do to its session
// shows, and that looking at it does not.
func TestChanged(t *testing.T) {
	tests := []struct {
		name   string
		do     func(ctx context.Context, m *sessionstore.Manager) error
		want   bool
		reason string
	}{
		{"nothing", func(context.Context, *sessionstore.Manager) error { return nil }, false, "loading is no change"},
		{"get", func(ctx context.Context, m *sessionstore.Manager) error {
			m.GetString(ctx, "uid")
			m.Exists(ctx, "none")
			m.Keys(ctx)
			return nil
		}, false, "reading is no change"},
		{"pop of nothing", func(ctx context.Context, m *sessionstore.Manager) error {
			m.PopString(ctx, "none")
			return nil
		}, false, "there was nothing to take"},
		{"rotation", func(ctx context.Context, m *sessionstore.Manager) error {
			rt, _ := m.Route(ctx)
			_, err := m.Claim(ctx, rt.Moved("b"))
			return err
		}, false, "claims are the middleware's"},
		{"rotation kept", func(ctx context.Context, m *sessionstore.Manager) error {
			rt, _ := m.Route(ctx)
			m.ClaimLater(ctx, rt.Moved("b"))
			return nil
		}, false, "claims are the middleware's"},
		{"put", func(ctx context.Context, m *sessionstore.Manager) error {
			m.Put(ctx, "gold", 1)
			return nil
		}, true, "a new value"},
		{"put again", func(ctx context.Context, m *sessionstore.Manager) error {
			m.Put(ctx, "uid", "7")
			return nil
		}, true, "an equal value was stored on purpose"},
		{"put beneath", func(ctx context.Context, m *sessionstore.Manager) error {
			m.SessionManager.Put(ctx, "uid", "8")
			return nil
		}, true, "the embedded manager stores too"},
		{"put of the route", func(ctx context.Context, m *sessionstore.Manager) error {
			m.SessionManager.Put(ctx, "db_server", "z")
			return nil
		}, true, "a handler sees its own shard in a second run"},
		{"remove", func(ctx context.Context, m *sessionstore.Manager) error {
			m.Remove(ctx, "uid")
			return nil
		}, true, "a value is gone"},
		{"pop", func(ctx context.Context, m *sessionstore.Manager) error {
			m.PopString(ctx, "uid")
			return nil
		}, true, "a second run would not find it"},
		{"in place", func(ctx context.Context, m *sessionstore.Manager) error {
			m.Get(ctx, "purse").(purse).Coins["gold"]++
			return nil
		}, true, "a second run would find another value"},
		{"clear", func(ctx context.Context, m *sessionstore.Manager) error { return m.Clear(ctx) }, true, "all values are gone"},
		{"renew", func(ctx context.Context, m *sessionstore.Manager) error { return m.RenewToken(ctx) }, true, "another token"},
		{"destroy", func(ctx context.Context, m *sessionstore.Manager) error { return m.Destroy(ctx) }, true, "no session"},
		{"destroy beneath", func(ctx context.Context, m *sessionstore.Manager) error {
			return m.SessionManager.Destroy(ctx)
		}, true, "no session"},
		{"remember", func(ctx context.Context, m *sessionstore.Manager) error {
			m.RememberMe(ctx, true)
			return nil
		}, true, "another cookie"},
		{"deadline", func(ctx context.Context, m *sessionstore.Manager) error {
			m.SetDeadline(ctx, time.Now().Add(time.Hour))
			return nil
		}, true, "another end"},
		{"commit", func(ctx context.Context, m *sessionstore.Manager) error {
			m.SessionManager.Put(ctx, "gold", 1)
			_, _, err := m.Commit(ctx)
			return err
		}, true, "Redis has it"},
	}
	for _, idle := range []time.Duration{0, time.Hour} {
		_, rdb := breakable(t)
		m := sessionstore.New(rdb, patient)
		t.Cleanup(func() { _ = m.Close() })
		m.IdleTimeout = idle // scs then calls every session modified
		for _, tt := range tests {
			ctx := load(t, m, "")
			m.Put(ctx, "uid", "7")
			m.Put(ctx, "purse", purse{map[string]int{"gold": 1, "tin": 2, "iron": 3}})
			token, _, err := m.Commit(ctx)
			if err != nil {
				t.Fatal(err)
			}
			ctx = load(t, m, token)
			if err := tt.do(ctx, m); err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if got := m.Changed(ctx); got != tt.want {
				t.Errorf("%s, idle timeout %v: Changed is %v, but %s", tt.name, idle, got, tt.reason)
			}
		}
	}
}

// TestChangedVisitor holds the same for requests that have no session yet.
func TestChangedVisitor(t *testing.T) {
	_, rdb := breakable(t)
	m := sessionstore.New(rdb, patient)
	t.Cleanup(func() { _ = m.Close() })
	for name, tt := range map[string]struct {
		do   func(ctx context.Context) error
		want bool
	}{
		"nothing": {func(context.Context) error { return nil }, false},
		"claim": {func(ctx context.Context) error {
			_, err := m.Claim(ctx, sessionstore.Route{Group: "g", Shard: "a"})
			return err
		}, false},
		"put":     {func(ctx context.Context) error { m.Put(ctx, "uid", "7"); return nil }, true},
		"renew":   {func(ctx context.Context) error { return m.RenewToken(ctx) }, true},
		"destroy": {func(ctx context.Context) error { return m.Destroy(ctx) }, true},
	} {
		ctx := load(t, m, "")
		if err := tt.do(ctx); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := m.Changed(ctx); got != tt.want {
			t.Errorf("%s: Changed is %v", name, got)
		}
	}
	if m.Changed(t.Context()) {
		t.Error("a context without a session has changed one")
	}
}
