package sessionstore_test

import (
	"net/http"
	"testing"
	"time"
)

// TestIdleRefreshOfOddValues: what nobody could have written neither ends a
// request nor gets lost, and a value changed in place is still saved.
func TestIdleRefreshOfOddValues(t *testing.T) {
	var s *site
	s = newSite(t, miniClient(t), map[string]http.HandlerFunc{
		"/fill": func(_ http.ResponseWriter, r *http.Request) {
			s.sessions.Put(r.Context(), "list", []string{"a"})
		},
		"/change": func(_ http.ResponseWriter, r *http.Request) {
			s.sessions.Get(r.Context(), "list").([]string)[0] = "b"
		},
	})
	s.sessions.IdleTimeout = time.Minute
	b := s.browser()
	b.visit("/fill")
	key := b.key()
	before := s.hash(key)
	odd := map[string]string{"d:empty": "", "d:cut": before["d:list"][:2], "d:later": "\xf0new format"}
	for field, value := range odd {
		if err := s.rdb.HSet(t.Context(), key, field, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if p := b.visit("/get?k=empty"); p.status != http.StatusOK {
		t.Errorf("%d %q", p.status, p.body)
	}
	if after := s.hash(key); after["version"] != before["version"] {
		t.Errorf("reading wrote %v", after)
	}
	b.visit("/change")
	after := s.hash(key)
	if after["d:list"] == before["d:list"] {
		t.Error("the change in place is lost")
	}
	for field, value := range odd {
		if got, ok := after[field]; !ok || got != value {
			t.Errorf("%s is %q, was %q", field, got, value)
		}
	}
}
