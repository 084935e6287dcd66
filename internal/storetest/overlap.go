package storetest

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

func overlapCases() []Case {
	return []Case{
		{"a slow save keeps what others stored and removed meanwhile", slowSaveKeepsOthers},
		{"a clear during a slow save takes all but what is saved after it", clearDuringASlowSave},
		{"fifty requests at once each keep their key", fiftyWriters},
		{"a slow read under an idle timeout undoes no save", slowReadUndoesNothing},
		{"a handler that saves twice keeps what others stored in between", twoSavesOfOneRequest},
		{"goroutines of one handler use its session at once", goroutinesOfOneHandler},
		{"keys that belong together change together", keysThatBelongTogether},
	}
}

func slowSaveKeepsOthers(t testing.TB, open Harness) {
	s := newSite(t, open)
	slow := s.gated("/slow", func(w http.ResponseWriter, r *http.Request) {
		s.put(w, r)
		s.Remove(r.Context(), "removed by me")
	})
	s.mux.HandleFunc("/remove", func(_ http.ResponseWriter, r *http.Request) {
		s.Remove(r.Context(), "removed-by-them")
	})
	b := s.browser()
	b.visit("/put?kept=1&both=1&removed-by-them=1&removed+by+me=1")
	slow.during(b, "/slow?a=1&both=mine", func() {
		b.visit("/put?b=2&both=theirs")
		b.visit("/remove")
	})
	s.want(b, "a", "1", "b", "2", "kept", "1", "both", "mine", "removed-by-them", "", "removed+by+me", "")
}

func clearDuringASlowSave(t testing.TB, open Harness) {
	s := newSite(t, open)
	slow := s.gated("/slow", s.put)
	s.mux.HandleFunc("/clear", s.call(s.Clear))
	b := s.browser()
	b.visit("/put?uid=7&theme=dark")
	token := b.token()
	slow.during(b, "/slow?late=1", func() { b.visit("/clear") })
	s.want(b, "uid", "", "theme", "", "late", "1")
	if b.token() != token {
		t.Error("the token changed")
	}
}

func fiftyWriters(t testing.TB, open Harness) {
	s := newSite(t, open)
	b := s.browser()
	b.visit("/put?uid=7")
	var paths, want []string
	for i := range 50 {
		paths = append(paths, fmt.Sprintf("/put?k%d=%d", i, i))
		want = append(want, fmt.Sprintf("k%d", i), fmt.Sprint(i))
	}
	b.all(paths)
	s.want(b, append(want, "uid", "7")...)
	s.wantStored(1)
}

func slowReadUndoesNothing(t testing.TB, open Harness) {
	s := newSite(t, open)
	s.Settings.IdleTimeout = time.Minute
	slow := s.gated("/slow", s.get)
	b := s.browser()
	b.visit("/put?a=1")
	answer := slow.during(b, "/slow?k=a", func() { b.visit("/put?a=2&k=3") })
	if answer.body != "1" {
		t.Errorf("the slow request read %q: it did not keep what it had loaded", answer.body)
	}
	s.want(b, "a", "2", "k", "3")
}

func twoSavesOfOneRequest(t testing.TB, open Harness) {
	m := open(t)
	token := stored(t, m, "uid", "7")
	slow := load(t, m, token)
	m.Put(slow, "first", "1")
	commit(slow, t, m)
	other := load(t, m, token)
	m.Put(other, "theirs", "1")
	commit(other, t, m)
	m.Put(slow, "second", "1")
	commit(slow, t, m)
	ctx := load(t, m, token)
	for _, key := range []string{"uid", "first", "theirs", "second"} {
		if !m.Exists(ctx, key) {
			t.Errorf("%s is lost", key)
		}
	}
}

func goroutinesOfOneHandler(t testing.TB, open Harness) {
	m := open(t)
	token := stored(t, m, "uid", "7")
	ctx := load(t, m, token)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			m.Put(ctx, fmt.Sprintf("k%d", i), i)
			m.Get(ctx, "uid")
			if _, _, err := m.Commit(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if keys := m.Keys(load(t, m, token)); len(keys) != 9 {
		t.Errorf("the session holds %v", keys)
	}
}

func keysThatBelongTogether(t testing.TB, open Harness) {
	s := newSite(t, open)
	if s.Atomic == nil {
		t.Fatal("the manager cannot keep keys together")
	}
	s.Atomic("uid", "role")
	slow := s.gated("/slow", s.put)
	b := s.browser()
	b.visit("/put?uid=7&role=player&theme=dark")
	// Each changes one of the two as seen against what it loaded.
	slow.during(b, "/slow?uid=8", func() { b.visit("/put?role=admin&theme=light") })
	s.want(b, "uid", "8", "role", "player", "theme", "light")
}
