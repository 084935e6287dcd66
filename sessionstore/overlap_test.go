package sessionstore_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/sessionstore"
)

// What internal/storetest cannot see from outside about requests of one session
// that overlap.

// TestCommitOfASessionThatIsGone gives the very error that is documented.
func TestCommitOfASessionThatIsGone(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		m, token := stored(t, rdb)
		ctx := load(t, m, token)
		if err := m.Destroy(load(t, m, token)); err != nil {
			t.Fatal(err)
		}
		m.Put(ctx, "late", 1)
		if _, _, err := m.Commit(ctx); err != sessionstore.ErrSessionGone { //nolint:errorlint // exactly this one
			t.Errorf("error is %v", err)
		}
	})
}

func TestIdleRefreshWritesNoData(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		var s *site
		g := newGate()
		s = newSite(t, rdb, map[string]http.HandlerFunc{"/slow": func(w http.ResponseWriter, r *http.Request) {
			g.wait()
			s.get(w, r)
		}})
		s.sessions.IdleTimeout = time.Minute
		b := s.browser()
		b.visit("/put?a=1")
		if err := rdb.PExpire(t.Context(), b.key(), 30*time.Second).Err(); err != nil {
			t.Fatal(err)
		}
		version := ""
		g.during(b, "/slow?k=a", func() {
			b.visit("/put?a=2&k=3")
			version = s.hash(b.key())["version"]
		})
		hash := s.hash(b.key())
		if hash["d:a"] != text("2") || hash["d:k"] != text("3") || hash["version"] != version {
			t.Errorf("after the slow read: %v, want version %s", hash, version)
		}
	})
}

func TestExpiryInThePast(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		past := func(s *site) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				s.put(w, r)
				s.sessions.SetDeadline(r.Context(), time.Now().Add(-time.Hour))
			}
		}
		var s *site
		s = newSite(t, rdb, map[string]http.HandlerFunc{
			"/past": func(w http.ResponseWriter, r *http.Request) { past(s)(w, r) },
			"/past-renewed": func(w http.ResponseWriter, r *http.Request) {
				s.must(s.sessionsRenew)(w, r)
				past(s)(w, r)
			},
		})
		b := s.browser()
		if p := b.visit("/past?a=1"); p.setsCookie() || len(s.keys()) != 0 {
			t.Errorf("a new session in the past: cookie %v, keys %v", p.setsCookie(), s.keys())
		}
		b.visit("/put?a=1")
		if p := b.visit("/past?a=2"); p.setsCookie() || len(s.keys()) != 0 {
			t.Errorf("a session moved into the past: cookie %v, keys %v", p.setsCookie(), s.keys())
		}
		b = s.browser()
		b.visit("/put?a=1")
		if p := b.visit("/past-renewed?a=2"); p.setsCookie() || len(s.keys()) != 0 {
			t.Errorf("a session renewed into the past: cookie %v, keys %v", p.setsCookie(), s.keys())
		}
	})
}

func TestDestroyEndsARenewalToo(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		var s *site
		s = newSite(t, rdb, map[string]http.HandlerFunc{"/both": func(w http.ResponseWriter, r *http.Request) {
			s.must(s.sessionsRenew)(w, r)
			s.must(s.sessionsDestroy)(w, r)
			if _, ok := s.sessions.Route(r.Context()); ok {
				t.Error("a destroyed session has a route")
			}
		}})
		b := s.browser()
		b.visit("/put?a=1")
		b.visit("/claim?shard=A")
		if p := b.visit("/both"); !p.setsCookie() {
			t.Error("the cookie was not cleared")
		}
		if keys := s.keys(); len(keys) != 0 {
			t.Errorf("left: %v", keys)
		}
	})
}
