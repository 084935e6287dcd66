package sessionstore_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/sessionstore"
)

func TestSessionIsOneHash(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newSite(t, rdb, nil)
		b := s.browser()
		if got := b.visit("/claim?shard=server_1").body; got != "server_1" {
			t.Fatalf("claimed %q", got)
		}
		if got := s.keys(); len(got) != 0 {
			t.Fatalf("a route alone made keys: %v", got)
		}
		answer := b.visit("/put?name=Ada")
		if !answer.setsCookie() {
			t.Fatal("no cookie for a new session")
		}
		b.visit("/claim?shard=server_2")
		if got := b.visit("/get?k=name").body; got != "Ada" {
			t.Errorf("name is %q", got)
		}
		key := b.key()
		if strings.Contains(key, b.token()) {
			t.Errorf("key %s shows the token", key)
		}
		hash := s.hash(key)
		for field, want := range map[string]string{
			"d:name": text("Ada"), "db_server": "server_2", "home": "server_2", "group": "", "epoch": "1", "version": "1",
		} {
			if got, ok := hash[field]; !ok || got != want {
				t.Errorf("field %s is %q, want %q", field, got, want)
			}
		}
		s.wantTTLs()
	})
}

func TestRouteIsWrittenWithTheNewSession(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		var s *site
		s = newSite(t, rdb, map[string]http.HandlerFunc{"/first": func(w http.ResponseWriter, r *http.Request) {
			s.put(w, r)
			_, err := s.sessions.Claim(r.Context(), sessionstore.Route{Group: "east", Shard: "a", Home: "a", Epoch: 1})
			if err != nil {
				t.Error(err)
			}
		}})
		b := s.browser()
		b.visit("/first?name=Ada")
		if got := b.visit("/get?k=db_server").body; got != "a" {
			t.Errorf("db_server is %q", got)
		}
		hash := s.hash(b.key())
		if hash["group"] != "east" || hash["home"] != "a" || hash["epoch"] != "1" {
			t.Errorf("route fields: %v", hash)
		}
	})
}

func TestRoundTrips(t *testing.T) {
	count := new(counter)
	rdb := miniClient(t)
	rdb.AddHook(count)
	if err := rdb.Ping(t.Context()).Err(); err != nil { // connects
		t.Fatal(err)
	}
	s := newSite(t, rdb, nil)
	b := s.browser()
	steps := []struct {
		path, names, reason string
		trips               int64
		cookie              bool
	}{
		{"/get?k=a", "", "no cookie, no call", 0, false},
		{"/put?a=1", "evalsha eval", "the first save loads the script", 2, true},
		{"/get?k=a", "hgetall", "a steady request reads once", 1, false},
		{"/put?a=1", "hgetall", "the same value again is no change", 1, false},
		{"/put?db_server=x", "hgetall", "db_server by hand is never stored", 1, false},
		{"/put?b=2", "hgetall evalsha eval", "the save script is new to this server", 3, true},
		{"/put?b=3", "hgetall evalsha", "a change is one script", 2, true},
		{"/logout", "hgetall del", "the end is one delete", 2, true},
	}
	for _, step := range steps {
		count.reset()
		answer := b.visit(step.path)
		trips, names := count.reset()
		if trips != step.trips || strings.TrimSpace(names) != step.names {
			t.Errorf("%s: %d round trips (%s), want %d (%s): %s", step.path, trips, names, step.trips, step.names, step.reason)
		}
		if answer.setsCookie() != step.cookie {
			t.Errorf("%s: cookie %v, want %v: %s", step.path, answer.setsCookie(), step.cookie, step.reason)
		}
	}
}

// TestSteadyRequestIsOneRoundTrip holds the price of a request that changes
// nothing, under an idle timeout as well, whatever the session holds.
func TestSteadyRequestIsOneRoundTrip(t *testing.T) {
	for _, idle := range []time.Duration{0, time.Minute} {
		count := new(counter)
		rdb := miniClient(t)
		rdb.AddHook(count)
		var s *site
		s = newSite(t, rdb, map[string]http.HandlerFunc{"/all": func(w http.ResponseWriter, r *http.Request) {
			for _, key := range s.sessions.Keys(r.Context()) {
				_ = s.sessions.Get(r.Context(), key)
			}
			_, _ = s.sessions.Route(r.Context())
			_ = s.sessions.Key(r.Context())
			w.WriteHeader(http.StatusNoContent)
		}})
		s.sessions.IdleTimeout = idle
		stranger, b := s.browser(), s.browser()
		b.visit("/put?a=1&b=2")
		b.visit("/claim?shard=A")
		count.reset()
		for range 10 {
			b.visit("/all")
			stranger.visit("/all")
		}
		if trips, names := count.reset(); trips != 10 {
			t.Errorf("idle timeout %v: %d round trips in 10 requests with a cookie and 10 without (%s)", idle, trips, names)
		}
	}
}

func TestMadeUpTokenLeavesNothing(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newSite(t, rdb, nil)
		for _, path := range []string{"/get?k=a", "/claim?shard=a", "/logout", "/renew", "/put?db_server=c"} {
			b := s.browser()
			b.plant("made-up")
			b.visit(path)
			if got := b.token(); got != "" && got != "made-up" {
				t.Errorf("%s: cookie %q", path, got)
			}
			if keys := s.keys(); len(keys) != 0 {
				t.Errorf("%s left %v", path, keys)
			}
		}
	})
}

func TestMadeUpTokenIsNeverTakenOver(t *testing.T) {
	s := newSite(t, miniClient(t), nil)
	b := s.browser()
	b.plant("made-up")
	b.visit("/put?a=1")
	if got := b.token(); got == "made-up" || got == "" {
		t.Errorf("token is %q", got)
	}
	if keys := s.keys(); len(keys) != 1 || keys[0] != b.key() {
		t.Errorf("keys: %v", keys)
	}
}

func TestCookieAndCacheHeaders(t *testing.T) {
	s := newSite(t, miniClient(t), nil)
	answer := s.browser().visit("/put?a=1")
	cookie := answer.header.Get("Set-Cookie")
	for _, want := range []string{"session=", "HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=86400"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("cookie %q lacks %s", cookie, want)
		}
	}
	if got := answer.header.Get("Vary"); got != "Cookie" {
		t.Errorf("Vary is %q", got)
	}
	if got := answer.header.Get("Cache-Control"); got != `no-cache="Set-Cookie"` {
		t.Errorf("Cache-Control is %q", got)
	}
}

func TestRenewalCarriesValuesAndRoute(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newSite(t, rdb, nil)
		b := s.browser()
		b.visit("/put?a=1")
		b.visit("/claim?shard=server_2")
		oldToken, oldKey := b.token(), b.key()
		b.visit("/renew")
		if b.token() == oldToken {
			t.Fatal("same token")
		}
		if got := s.hash(oldKey); len(got) != 0 {
			t.Errorf("old session still holds %v", got)
		}
		if got := b.visit("/get?k=a").body; got != "1" {
			t.Errorf("a is %q", got)
		}
		if got := s.hash(b.key()); got["db_server"] != "server_2" || got["epoch"] != "1" {
			t.Errorf("route is %v", got)
		}
		// The route of the new session goes on from there.
		if got := b.visit("/claim?shard=server_3").body; got != "server_3" {
			t.Errorf("claim after renewal: %q", got)
		}
		s.wantTTLs()
	})
}

func TestIdleTimeout(t *testing.T) {
	mini := miniredis.RunT(t)
	count := new(counter)
	rdb := client(t, mini.Addr())
	rdb.AddHook(count)
	s := newSite(t, rdb, nil)
	s.sessions.IdleTimeout = 100 * time.Second
	b := s.browser()
	b.visit("/put?a=1")
	b.visit("/put?a=2")
	mini.FastForward(6 * time.Second)
	b.visit("/get?k=a") // all scripts are loaded now
	key := b.key()
	if ttl := mini.TTL(key); ttl < 104*time.Second || ttl > 105*time.Second {
		t.Errorf("TTL of a session is %v, want the timeout and a twentieth", ttl)
	}

	count.reset()
	mini.FastForward(4 * time.Second)
	b.visit("/get?k=a")
	if trips, names := count.reset(); trips != 1 {
		t.Errorf("within a twentieth: %d round trips (%s)", trips, names)
	}
	mini.FastForward(2 * time.Second)
	answer := b.visit("/get?k=a")
	if trips, names := count.reset(); trips != 2 {
		t.Errorf("after a twentieth: %d round trips (%s)", trips, names)
	}
	if !answer.setsCookie() {
		t.Error("the cookie's expiry did not move with the key's")
	}
	if version := s.hash(key)["version"]; version != "2" {
		t.Errorf("a touch counted as a save: version %s", version)
	}
	if ttl := mini.TTL(key); ttl < 104*time.Second {
		t.Errorf("TTL after the touch is %v", ttl)
	}
	mini.FastForward(106 * time.Second)
	if got := b.visit("/get?k=a").body; got != "" {
		t.Errorf("idle session still has %q", got)
	}
}

// TestShortIdleTimeout: also a timeout whose twentieth is less than a second
// is not moved by every request.
func TestShortIdleTimeout(t *testing.T) {
	mini := miniredis.RunT(t)
	count := new(counter)
	rdb := client(t, mini.Addr())
	rdb.AddHook(count)
	s := newSite(t, rdb, nil)
	s.sessions.IdleTimeout = 18 * time.Second // a twentieth is 900ms
	b := s.browser()
	b.visit("/put?a=1")
	count.reset()
	for range 3 {
		b.visit("/get?k=a")
	}
	if _, names := count.reset(); strings.Contains(names, "eval") {
		t.Errorf("three requests at once: %s", names)
	}
	mini.FastForward(time.Second)
	b.visit("/get?k=a")
	if _, names := count.reset(); !strings.Contains(names, "eval") {
		t.Errorf("after a twentieth: %s", names)
	}
}

func TestIdleTimeoutNeverOutlivesTheLifetime(t *testing.T) {
	mini := miniredis.RunT(t)
	s := newSite(t, client(t, mini.Addr()), nil)
	s.sessions.Lifetime = 30 * time.Second
	s.sessions.IdleTimeout = time.Minute
	b := s.browser()
	b.visit("/put?a=1")
	if ttl := mini.TTL(b.key()); ttl > 30*time.Second {
		t.Errorf("TTL %v is beyond the lifetime", ttl)
	}
}

func TestExpiresIsCheckedAtLoad(t *testing.T) {
	tests := []struct{ field, value, reason string }{
		{"expires", "1", "long over, but the key is still there"},
		{"expires", "soon", "unreadable"},
		{"expires", "", "unreadable"},
		{"version", "", "no session of ours"},
		{"renewing", mark(time.Minute), "its token is being replaced"},
	}
	for _, test := range tests {
		s := newSite(t, miniClient(t), nil)
		b := s.browser()
		b.visit("/put?a=1")
		if err := s.rdb.HSet(t.Context(), b.key(), test.field, test.value).Err(); err != nil {
			t.Fatal(err)
		}
		if got := b.visit("/get?k=a").body; got == "1" {
			t.Errorf("%s=%q gave a session: %s", test.field, test.value, test.reason)
		}
	}
}

func TestTwoManagersInOneRequest(t *testing.T) {
	rdb := miniClient(t)
	one := sessionstore.New(rdb, sessionstore.Config{Prefix: "one:"})
	two := sessionstore.New(rdb, sessionstore.Config{Prefix: "two:"})
	two.Cookie.Name = "other"
	s := &site{t: t, sessions: one, rdb: rdb, log: new(lab.Log)}
	s.url = serve(t, one.LoadAndSave(two.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/put" {
			one.Put(r.Context(), "a", "1")
			two.Put(r.Context(), "a", "2")
			return
		}
		_, _ = w.Write([]byte(one.GetString(r.Context(), "a") + two.GetString(r.Context(), "a")))
	}))), s.log)
	b := s.browser()
	b.visit("/put")
	if got := b.visit("/").body; got != "12" {
		t.Errorf("sessions hold %q", got)
	}
}
