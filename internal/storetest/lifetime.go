package storetest

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/alexedwards/scs/v2"

	"github.com/shardhop/shardhop/internal/lab"
)

// soon is a lifetime that a test can wait for; ending bounds the wait.
const (
	soon   = 300 * time.Millisecond
	ending = 10 * time.Second
)

func lifetimeCases() []Case {
	return []Case{
		{"a session ends with its lifetime, however much it is used", endsWithItsLifetime},
		{"a session that is not used ends with the idle timeout", endsWhenIdle},
		{"use postpones the idle timeout", usePostponesTheEnd},
		{"under an idle timeout a stored session is to be committed", idleIsModified},
		{"under an idle timeout a value changed in place is saved", changedInPlaceWhenIdle},
		{"saves leave the deadline", savesLeaveTheDeadline},
		{"the deadline can be moved", deadlineMoves},
		{"a commit tells the earlier of both ends", commitTellsTheEnd},
	}
}

func endsWithItsLifetime(t testing.TB, open Harness) {
	m := open(t)
	m.Settings.Lifetime = soon
	born := time.Now()
	token := stored(t, m, "a", "1")
	lab.Eventually(t, ending, "the session ends", func() bool {
		ctx := load(t, m, token)
		if !m.Exists(ctx, "a") {
			return true
		}
		m.Put(ctx, "b", time.Now().UnixNano())
		_, _, _ = m.Commit(ctx) // may find the session gone
		return false
	})
	if age := time.Since(born); age < soon-time.Millisecond {
		t.Errorf("ended after %v", age)
	}
}

func endsWhenIdle(t testing.TB, open Harness) {
	m := open(t)
	m.Settings.IdleTimeout = soon
	stored(t, m, "a", "1")
	// Asking for the session would be use.
	lab.Eventually(t, ending, "the session ends", func() bool { return m.Stored(t) == 0 })
}

func usePostponesTheEnd(t testing.TB, open Harness) {
	const idle = time.Second
	s := newSite(t, open)
	s.Settings.IdleTimeout = idle
	b := s.browser()
	b.visit("/put?a=1")
	born, used := time.Now(), time.Now()
	lab.Eventually(t, ending, "twice the idle timeout is over", func() bool {
		if b.visit("/get?k=a").body != "1" {
			// A machine that stood still for so long proves nothing.
			if time.Since(used) < idle*9/10 {
				t.Fatalf("ended %v after it was used", time.Since(used))
			}
			b.visit("/put?a=1")
			born = time.Now()
		}
		used = time.Now()
		return time.Since(born) > 2*idle
	})
}

// Middleware of an application's own commits what is Modified.
func idleIsModified(t testing.TB, open Harness) {
	m := open(t)
	m.Settings.IdleTimeout = time.Minute
	if got := m.Status(load(t, m, "")); got != scs.Unmodified {
		t.Errorf("a visitor's session: status %v", got)
	}
	ctx := load(t, m, stored(t, m, "a", "1"))
	if got := m.Status(ctx); got != scs.Modified {
		t.Errorf("a stored session: status %v", got)
	}
	if err := m.Destroy(ctx); err != nil || m.Status(ctx) != scs.Destroyed {
		t.Errorf("a destroyed session: status %v, %v", m.Status(ctx), err)
	}
	err := m.Iterate(t.Context(), func(ctx context.Context) error {
		if got := m.Status(ctx); got != scs.Unmodified {
			t.Errorf("a session of an iteration: status %v", got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func changedInPlaceWhenIdle(t testing.TB, open Harness) {
	s := newSite(t, open)
	s.Settings.IdleTimeout = time.Minute
	s.mux.HandleFunc("/fill", func(_ http.ResponseWriter, r *http.Request) {
		s.Put(r.Context(), "map", map[string]int{"gold": 1})
		s.Put(r.Context(), "slice", []string{"a"})
		s.Put(r.Context(), "bytes", []byte("a"))
		s.Put(r.Context(), "structs", []Player{{"Ada", 1}})
		s.Put(r.Context(), "text", "same")
	})
	changes := map[string]func(value any){
		"map":     func(value any) { value.(map[string]int)["gold"] = 2 },
		"slice":   func(value any) { value.([]string)[0] = "b" },
		"bytes":   func(value any) { value.([]byte)[0] = 'b' },
		"structs": func(value any) { value.([]Player)[0].Level = 2 },
	}
	s.mux.HandleFunc("/change", func(_ http.ResponseWriter, r *http.Request) {
		key := r.URL.Query().Get("k")
		changes[key](s.Get(r.Context(), key))
	})
	s.mux.HandleFunc("/show", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%+v", s.Get(r.Context(), r.URL.Query().Get("k")))
	})
	b := s.browser()
	b.visit("/fill")
	for key := range changes {
		before := b.visit("/show?k=" + key).body
		b.visit("/change?k=" + key)
		if after := b.visit("/show?k=" + key).body; after == before {
			t.Errorf("the change of %s is lost: %s", key, after)
		}
	}
	s.want(b, "text", "same")
}

func savesLeaveTheDeadline(t testing.TB, open Harness) {
	m := open(t)
	ctx := load(t, m, "")
	m.Put(ctx, "a", "1")
	want := m.Deadline(ctx)
	if left := time.Until(want); left > m.Settings.Lifetime || left < m.Settings.Lifetime-time.Minute {
		t.Errorf("a new session has %v", left)
	}
	token := commit(ctx, t, m)
	for i := range 3 {
		ctx = load(t, m, token)
		if got := m.Deadline(ctx); got.Sub(want).Abs() >= time.Millisecond {
			t.Errorf("after %d saves the deadline is %v, want %v", i+1, got, want)
		}
		m.Put(ctx, "a", i)
		commit(ctx, t, m)
	}
}

func deadlineMoves(t testing.TB, open Harness) {
	m := open(t)
	token := stored(t, m, "a", "1")
	for _, lifetime := range []time.Duration{time.Hour, 48 * time.Hour, time.Minute} {
		want := time.Now().Add(lifetime).UTC().Truncate(time.Millisecond)
		ctx := load(t, m, token)
		m.SetDeadline(ctx, want)
		_, expiry, err := m.Commit(ctx)
		if err != nil || !expiry.Equal(want) {
			t.Errorf("commit tells %v, %v, want %v", expiry, err, want)
		}
		if got := m.Deadline(load(t, m, token)); !got.Equal(want) {
			t.Errorf("the deadline is %v, want %v", got, want)
		}
	}
}

func commitTellsTheEnd(t testing.TB, open Harness) {
	tests := []struct{ lifetime, idle, want time.Duration }{
		{time.Hour, 0, time.Hour},
		{time.Hour, time.Minute, time.Minute},
		{time.Minute, time.Hour, time.Minute},
	}
	for _, test := range tests {
		m := open(t)
		m.Settings.Lifetime, m.Settings.IdleTimeout = test.lifetime, test.idle
		ctx := load(t, m, "")
		m.Put(ctx, "a", "1")
		_, expiry, err := m.Commit(ctx)
		if left := time.Until(expiry); err != nil || left > test.want || left < test.want-30*time.Second {
			t.Errorf("lifetime %v, idle %v: ends in %v, %v", test.lifetime, test.idle, left, err)
		}
	}
}
