package sessionstore_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestLateValuesOfAnUnknownSessionAreLeft(t *testing.T) {
	var s *site
	s = newSite(t, miniClient(t), map[string]http.HandlerFunc{"/late": func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("hello"))
		s.put(w, r)
	}})
	b := s.browser()
	b.visit("/late?a=1")
	if keys := s.keys(); len(keys) != 0 {
		t.Errorf("a session that nobody can reach: %v", keys)
	}
	b.visit("/put?b=1")
	b.visit("/late?a=1")
	if got := b.visit("/get?k=a").body; got != "1" {
		t.Errorf("a late value of a known session is %q", got)
	}
}

func TestLateRenewalLeavesTheOldSession(t *testing.T) {
	var s *site
	s = newSite(t, miniClient(t), map[string]http.HandlerFunc{"/late": func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("hello"))
		if err := s.sessions.RenewToken(r.Context()); err != nil {
			t.Error(err)
		}
	}})
	b := s.browser()
	b.visit("/put?a=1")
	b.visit("/late")
	if got := b.visit("/get?k=a").body; got != "1" {
		t.Errorf("a is %q: the player lost the session", got)
	}
}

func TestLateSaveThatFailsIsLogged(t *testing.T) {
	mini, rdb := breakable(t)
	var s *site
	s = newSite(t, rdb, map[string]http.HandlerFunc{"/late": func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("hello"))
		mini.SetError("OOM")
		s.put(w, r)
	}})
	b := s.browser()
	b.visit("/put?a=1")
	if p := b.visit("/late?a=2"); p.status != http.StatusOK || p.body != "hello" {
		t.Errorf("%d %q", p.status, p.body)
	}
	if !strings.Contains(s.log.String(), "OOM") {
		t.Errorf("log: %q", s.log)
	}
}
