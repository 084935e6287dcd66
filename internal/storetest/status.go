package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/alexedwards/scs/v2"
)

func statusCases() []Case {
	return []Case{
		{"status follows what was done", statusFollows},
		{"loading twice in one context loads once", loadsOnce},
		{"an unknown token gives a new session", unknownToken},
		{"a session without load panics", panicsWithoutLoad},
		{"a load that fails is an error, not a new session", failedLoad},
		{"a save that fails is an error", failedSave},
	}
}

func statusFollows(t testing.TB, open Harness) {
	tests := []struct {
		name string
		do   func(m Subject, ctx context.Context) error
		want scs.Status
	}{
		{"nothing", func(Subject, context.Context) error { return nil }, scs.Unmodified},
		{"get", func(m Subject, ctx context.Context) error { m.Get(ctx, "a"); return nil }, scs.Unmodified},
		{"put", func(m Subject, ctx context.Context) error { m.Put(ctx, "b", 1); return nil }, scs.Modified},
		{"remove", func(m Subject, ctx context.Context) error { m.Remove(ctx, "a"); return nil }, scs.Modified},
		{"remove of nothing", func(m Subject, ctx context.Context) error { m.Remove(ctx, "b"); return nil }, scs.Unmodified},
		{"clear", func(m Subject, ctx context.Context) error { return m.Clear(ctx) }, scs.Modified},
		{"renewal", func(m Subject, ctx context.Context) error { return m.RenewToken(ctx) }, scs.Modified},
		{"deadline", func(m Subject, ctx context.Context) error {
			m.SetDeadline(ctx, time.Now().Add(time.Hour))
			return nil
		}, scs.Modified},
		{"remember me", func(m Subject, ctx context.Context) error { m.RememberMe(ctx, true); return nil }, scs.Modified},
		{"destroy", func(m Subject, ctx context.Context) error { return m.Destroy(ctx) }, scs.Destroyed},
	}
	m := open(t)
	for _, test := range tests {
		ctx := load(t, m, stored(t, m, "a", "1"))
		if err := test.do(m, ctx); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if got := m.Status(ctx); got != test.want {
			t.Errorf("status after %s is %v, want %v", test.name, got, test.want)
		}
	}
}

func loadsOnce(t testing.TB, open Harness) {
	m := open(t)
	ctx := load(t, m, stored(t, m, "a", "1"))
	m.Put(ctx, "a", "2")
	again, err := m.Load(ctx, stored(t, m, "a", "other"))
	if err != nil || m.GetString(again, "a") != "2" {
		t.Errorf("the second load gives %q, %v", m.GetString(again, "a"), err)
	}
}

func unknownToken(t testing.TB, open Harness) {
	m := open(t)
	ctx := load(t, m, "made-up")
	if m.Token(ctx) != "" || m.Status(ctx) != scs.Unmodified || len(m.Keys(ctx)) != 0 {
		t.Errorf("token %q, status %v, keys %v", m.Token(ctx), m.Status(ctx), m.Keys(ctx))
	}
	m.Put(ctx, "a", "1")
	if token := commit(ctx, t, m); token == "made-up" || token == "" {
		t.Errorf("the session got the token %q", token)
	}
}

func panicsWithoutLoad(t testing.TB, open Harness) {
	m := open(t)
	defer func() {
		if recover() == nil {
			t.Error("read from a context without a session")
		}
	}()
	m.GetString(t.Context(), "a")
}

func failedLoad(t testing.TB, open Harness) {
	m := open(t)
	token := stored(t, m, "a", "1")
	m.Fail(true)
	if _, err := m.Load(t.Context(), token); err == nil {
		t.Error("a store that fails gave a session")
	}
	m.Fail(false)
	if got := m.GetString(load(t, m, token), "a"); got != "1" {
		t.Errorf("afterwards a is %q", got)
	}
}

func failedSave(t testing.TB, open Harness) {
	m := open(t)
	token := stored(t, m, "a", "1")
	ctx := load(t, m, token)
	m.Put(ctx, "a", "2")
	m.Fail(true)
	if _, _, err := m.Commit(ctx); err == nil {
		t.Error("saved in a store that fails")
	}
	m.Fail(false)
	commit(ctx, t, m) // the same request tries again
	if got := m.GetString(load(t, m, token), "a"); got != "2" {
		t.Errorf("afterwards a is %q", got)
	}
}
