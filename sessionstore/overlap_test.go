package sessionstore_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/sessionstore"
)

// A slow request loads its session and waits in a gate; meanwhile others of
// the same player run; then the slow one goes on.

func TestOverlappingRequestsKeepEachOthersChanges(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		var s *site
		g := newGate()
		s = newSite(t, rdb, map[string]http.HandlerFunc{"/slow": func(w http.ResponseWriter, r *http.Request) {
			g.wait()
			s.put(w, r)
			s.sessions.Remove(r.Context(), "old")
		}})
		b := s.browser()
		b.visit("/put?old=1&kept=1")
		b.visit("/claim?shard=A")
		g.during(b, "/slow?a=1", func() {
			b.visit("/claim?shard=B")
			b.visit("/put?b=2")
		})
		hash := s.hash(b.key())
		for field, want := range map[string]string{"d:a": text("1"), "d:b": text("2"), "d:kept": text("1"), "db_server": "B", "d:old": ""} {
			if hash[field] != want {
				t.Errorf("field %s is %q, want %q", field, hash[field], want)
			}
		}
	})
}

func TestLoggedOutStaysLoggedOut(t *testing.T) {
	tests := []struct {
		name string
		idle time.Duration
		slow func(*site, http.ResponseWriter, *http.Request)
	}{
		{"writes", 0, (*site).put},
		{"writes, idle timeout", time.Minute, (*site).put},
		{"reads", 0, (*site).get},
		{"reads, idle timeout", time.Minute, (*site).get},
		{"claims", 0, func(s *site, _ http.ResponseWriter, r *http.Request) {
			route, _ := s.sessions.Route(r.Context())
			if _, err := s.sessions.Claim(r.Context(), route.Moved("B")); err == nil {
				s.t.Error("claimed the route of a session that is gone")
			}
		}},
		{"moves the deadline", 0, func(s *site, _ http.ResponseWriter, r *http.Request) {
			s.sessions.SetDeadline(r.Context(), time.Now().Add(time.Hour))
		}},
		{"saves by itself", 0, func(s *site, w http.ResponseWriter, r *http.Request) {
			s.put(w, r)
			if _, _, err := s.sessions.Commit(r.Context()); err != sessionstore.ErrSessionGone { //nolint:errorlint // exactly this one, as documented
				s.t.Errorf("Commit says %v", err)
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
				var s *site
				g := newGate()
				s = newSite(t, rdb, map[string]http.HandlerFunc{"/slow": func(w http.ResponseWriter, r *http.Request) {
					g.wait()
					test.slow(s, w, r)
				}})
				s.sessions.IdleTimeout = test.idle
				b := s.browser()
				b.visit("/put?uid=7")
				// A touch is due at once, or the read under an idle timeout proves nothing.
				if err := rdb.PExpire(t.Context(), b.key(), 30*time.Second).Err(); err != nil {
					t.Fatal(err)
				}
				answer := g.during(b, "/slow?k=v", func() { b.visit("/logout") })
				if answer.status != http.StatusOK || answer.setsCookie() {
					t.Errorf("slow answer: %d, cookie %q", answer.status, answer.header["Set-Cookie"])
				}
				if keys := s.keys(); len(keys) != 0 {
					t.Errorf("revived: %v", keys)
				}
			})
		})
	}
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

func TestSlowRenewal(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		renew := func(t *testing.T, meanwhile func(b *browser)) (*site, *browser) {
			var s *site
			g := newGate()
			s = newSite(t, rdb, map[string]http.HandlerFunc{"/slow": func(w http.ResponseWriter, r *http.Request) {
				g.wait()
				if err := s.sessions.RenewToken(r.Context()); err != nil {
					t.Error(err)
				}
				s.put(w, r)
			}})
			b := s.browser()
			b.visit("/put?uid=7&theme=dark")
			b.visit("/claim?shard=A")
			g.during(b, "/slow?mine=1", func() { meanwhile(b) })
			return s, b
		}
		t.Run("takes along what others stored", func(t *testing.T) {
			s, b := renew(t, func(b *browser) {
				b.visit("/put?theme=light&theirs=1")
				b.visit("/claim?shard=B")
			})
			hash := s.hash(b.key())
			for field, want := range map[string]string{
				"d:uid": text("7"), "d:theme": text("light"), "d:theirs": text("1"), "d:mine": text("1"), "db_server": "B", "epoch": "2",
			} {
				if hash[field] != want {
					t.Errorf("field %s is %q, want %q", field, hash[field], want)
				}
			}
			s.wantTTLs()
		})
		t.Run("takes nothing along from a session logged out meanwhile", func(t *testing.T) {
			s, b := renew(t, func(b *browser) { b.visit("/logout") })
			hash := s.hash(b.key())
			if hash["d:mine"] != text("1") || hash["d:uid"] != "" || hash["d:theme"] != "" {
				t.Errorf("new session holds %v", hash)
			}
		})
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

func TestRunsOutDuringASlowRequest(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		var s *site
		s = newSite(t, rdb, map[string]http.HandlerFunc{"/slow": func(w http.ResponseWriter, r *http.Request) {
			s.put(w, r)
			<-time.After(time.Until(s.sessions.Deadline(r.Context())) + time.Millisecond)
		}})
		s.sessions.Lifetime = 300 * time.Millisecond
		b := s.browser()
		b.visit("/put?a=1")
		if p := b.visit("/slow?a=2"); p.setsCookie() || p.status != http.StatusOK {
			t.Errorf("slow answer: %d, cookie %q", p.status, p.header["Set-Cookie"])
		}
		// Redis may have ended the key by now; miniredis has no clock of its
		// own and keeps it, to be refused.
		for _, key := range s.keys() {
			if hash := s.hash(key); hash["d:a"] == text("2") {
				t.Errorf("saved after its end: %v", hash)
			}
		}
		s.wantTTLs()
		if got := b.visit("/get?k=a").body; got != "" {
			t.Errorf("immortal: a is %q", got)
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
