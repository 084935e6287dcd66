package sessionstore_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shardhop/shardhop/sessionstore"
)

// writer is one of the two requests of TestInterleavings, with a model of what
// it did.
type writer struct {
	m       *sessionstore.Manager
	ctx     context.Context
	mine    map[string]int  // the session as the handler sees it
	base    map[string]int  // the same as of its last save, or of the load
	changed map[string]bool // the keys that its saves changed
}

var interleavedKeys = []string{"a", "b", "c", "d"}

// TestInterleavings lets two requests of one session load, store, remove, save
// and log out in any order. No key that only one of them changed is lost, a
// key that both changed has the value of one of them, and a session that one of
// them ended stays ended.
func TestInterleavings(t *testing.T) {
	_, rdb := breakable(t)
	m := sessionstore.New(rdb, patient)
	rapid.Check(t, func(rt *rapid.T) {
		start := rapid.MapOfN(rapid.SampledFrom(interleavedKeys), rapid.IntRange(0, 2), 1, 4).Draw(rt, "start")
		token := save(t, m, start)
		writers := []*writer{newWriter(t, m, token), newWriter(t, m, token)}
		destroyed := false
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			w := rapid.SampledFrom(writers).Draw(rt, "writer")
			key := rapid.SampledFrom(interleavedKeys).Draw(rt, "key")
			switch rapid.SampledFrom([]string{"put", "put", "put", "remove", "save", "save", "log out"}).Draw(rt, "step") {
			case "put":
				w.put(key, rapid.IntRange(0, 2).Draw(rt, "value"))
			case "remove":
				m.Remove(w.ctx, key)
				delete(w.mine, key)
			case "save":
				w.save(rt, destroyed)
			case "log out":
				if rapid.IntRange(0, 3).Draw(rt, "really") == 0 {
					if err := m.Destroy(load(t, m, token)); err != nil {
						rt.Fatal(err)
					}
					destroyed = true
				}
			}
		}
		for _, w := range writers {
			w.save(rt, destroyed)
		}
		check(t, rt, m, token, start, writers, destroyed)
	})
}

func newWriter(t *testing.T, m *sessionstore.Manager, token string) *writer {
	w := &writer{m: m, ctx: load(t, m, token), mine: map[string]int{}, changed: map[string]bool{}}
	for _, key := range m.Keys(w.ctx) {
		w.mine[key] = m.GetInt(w.ctx, key)
	}
	w.base = maps.Clone(w.mine)
	return w
}

func (w *writer) put(key string, value int) {
	w.m.Put(w.ctx, key, value)
	w.mine[key] = value
}

func (w *writer) save(rt *rapid.T, destroyed bool) {
	_, _, err := w.m.Commit(w.ctx)
	switch {
	case errors.Is(err, sessionstore.ErrSessionGone):
		if !destroyed {
			rt.Fatal("a session that lives is said to be gone")
		}
	case err != nil:
		rt.Fatal(err)
	case !destroyed:
		for _, key := range interleavedKeys {
			was, had := w.base[key]
			is, has := w.mine[key]
			if was != is || had != has {
				w.changed[key] = true
			}
		}
		w.base = maps.Clone(w.mine)
	}
}

func check(t *testing.T, rt *rapid.T, m *sessionstore.Manager, token string, start map[string]int, writers []*writer, destroyed bool) {
	now := load(t, m, token)
	if destroyed {
		if keys := m.Keys(now); len(keys) != 0 {
			rt.Fatalf("revived: %v", keys)
		}
		return
	}
	for _, key := range interleavedKeys {
		var allowed []map[string]int
		for _, w := range writers {
			if w.changed[key] {
				allowed = append(allowed, w.base)
			}
		}
		if allowed == nil {
			allowed = append(allowed, start)
		}
		got, has := m.GetInt(now, key), m.Exists(now, key)
		if !slices.ContainsFunc(allowed, func(values map[string]int) bool {
			want, wants := values[key]
			return got == want && has == wants
		}) {
			rt.Fatalf("key %s is %d (there: %v), want it as in one of %v", key, got, has, allowed)
		}
	}
}

// save stores a new session and returns its token.
func save(t *testing.T, m *sessionstore.Manager, values map[string]int) string {
	t.Helper()
	ctx := load(t, m, "")
	for key, value := range values {
		m.Put(ctx, key, value)
	}
	token, _, err := m.Commit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return token
}
