package admin_test

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/shardhop/shardhop/example-game/internal/admin"
	"github.com/shardhop/shardhop/shardrouter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeLab remembers what it was told, and refuses to thaw.
type fakeLab struct{ told []string }

func (l *fakeLab) Do(shard, verb string) error {
	if verb == "thaw" {
		return errors.New("not frozen")
	}
	l.told = append(l.told, shard+" "+verb)
	return nil
}

func (l *fakeLab) State(string) string { return "up" }

// newRouter has two shards that nobody serves: what is tested here does not
// need them.
func newRouter(t *testing.T) (*shardrouter.Router, *miniredis.Miniredis) {
	t.Helper()
	server := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	r, err := shardrouter.New(shardrouter.Config{
		Shards: []shardrouter.Shard{
			{Name: "a", DSN: "app@tcp(127.0.0.1:1)/game"},
			{Name: "b", DSN: "app@tcp(127.0.0.1:1)/game"},
		},
		Redis:  rdb,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r, server
}

func newHandler(t *testing.T, cfg admin.Config) http.Handler {
	t.Helper()
	if cfg.Router == nil {
		cfg.Router, _ = newRouter(t)
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	h, err := admin.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// request is one call, from a program on this machine unless changed.
func request(method, path, body string, change ...func(*http.Request)) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8081"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(r)
	}
	return r
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func TestHostAndOriginAreChecked(t *testing.T) {
	local := newHandler(t, admin.Config{Addr: "127.0.0.1:8081"})
	everywhere := newHandler(t, admin.Config{Addr: "0.0.0.0:8081", Token: "secret"})
	named := newHandler(t, admin.Config{Addr: "ops.internal:8081", Token: "secret"})
	for _, tc := range []struct {
		handler http.Handler
		change  []func(*http.Request)
		status  int
		reason  string
	}{
		{local, nil, 200, "a program on this machine"},
		{local, []func(*http.Request){host("localhost:8081")}, 200, "a loopback name"},
		{local, []func(*http.Request){host("[::1]:8081")}, 200, "a loopback address"},
		{local, []func(*http.Request){host("127.0.0.1")}, 200, "no port"},
		{local, []func(*http.Request){host("evil.example:8081")}, 403, "a rebound name"},
		{local, []func(*http.Request){host("localhost.evil.example")}, 403, "a name that begins well"},
		{local, []func(*http.Request){host("10.0.0.5:8081")}, 403, "an address that is not loopback"},
		{local, []func(*http.Request){host("")}, 403, "no host"},
		{local, []func(*http.Request){header("Origin", "http://127.0.0.1:8081")}, 200, "its own page"},
		{local, []func(*http.Request){header("Origin", "https://evil.example")}, 403, "another site's page"},
		{local, []func(*http.Request){header("Origin", "http://127.0.0.1:8080")}, 403, "another port is another origin"},
		{local, []func(*http.Request){header("Origin", "null")}, 403, "a page without an origin"},
		{local, []func(*http.Request){header("Sec-Fetch-Site", "cross-site")}, 403, "the browser says so"},
		{local, []func(*http.Request){header("Sec-Fetch-Site", "same-origin")}, 200, "the browser says so"},
		{everywhere, []func(*http.Request){host("10.0.0.5:8081"), header("Authorization", "Bearer secret")}, 200, "an address of the machine"},
		{everywhere, []func(*http.Request){host("evil.example"), header("Authorization", "Bearer secret")}, 403, "a rebound name"},
		{named, []func(*http.Request){host("ops.internal:8081"), header("Authorization", "Bearer secret")}, 200, "the configured name"},
		{named, []func(*http.Request){host("10.0.0.5"), header("Authorization", "Bearer secret")}, 403, "not the configured name"},
		{named, []func(*http.Request){host("ops.internal:8081")}, 401, "no token"},
		{named, []func(*http.Request){host("ops.internal:8081"), header("Authorization", "Bearer Secret")}, 401, "a wrong token"},
		{named, []func(*http.Request){host("ops.internal:8081"), header("Authorization", "Basic secret")}, 401, "a wrong scheme"},
		{named, []func(*http.Request){host("ops.internal:8081"), header("Authorization", "Bearer ")}, 401, "an empty token"},
	} {
		if w := serve(tc.handler, request("GET", "/shards", "", tc.change...)); w.Code != tc.status {
			t.Errorf("%s: %d %s, want %d", tc.reason, w.Code, w.Body, tc.status)
		}
	}
}

func TestEveryCallNeedsTheToken(t *testing.T) {
	h := newHandler(t, admin.Config{Addr: "127.0.0.1:8081", Token: "secret", Lab: &fakeLab{}})
	for _, call := range []string{
		"GET /", "GET /shards", "PUT /shards/a/drain", "DELETE /shards/a/drain", "POST /lab/a/stop",
		"GET /debug/pprof/", "GET /debug/pprof/cmdline", "GET /debug/pprof/heap",
	} {
		method, path, _ := strings.Cut(call, " ")
		if w := serve(h, request(method, path, "")); w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%s: %d", call, w.Code)
		}
	}
	w := serve(h, request("GET", "/", "", header("Accept", "text/html")))
	if w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), `id="token"`) {
		t.Errorf("a browser is not asked for the token: %d %s", w.Code, w.Body)
	}
	if w := serve(h, request("GET", "/assets/admin.js", "")); w.Code != http.StatusOK {
		t.Errorf("the page's script: %d", w.Code)
	}
}

func TestExposureNeedsAToken(t *testing.T) {
	for _, tc := range []struct {
		addr, token string
		ok          bool
	}{
		{"127.0.0.1:8081", "", true},
		{"127.8.8.8:8081", "", true},
		{"localhost:0", "", true},
		{"[::1]:8081", "", true},
		{"0.0.0.0:8081", "", false},
		{":8081", "", false},
		{"[::]:8081", "", false},
		{"10.0.0.5:8081", "", false},
		{"ops.internal:8081", "", false},
		{"0.0.0.0:8081", "secret", true},
	} {
		if err := admin.CheckExposure(tc.addr, tc.token); (err == nil) != tc.ok {
			t.Errorf("%s with token %q: %v", tc.addr, tc.token, err)
		}
	}
	if _, err := admin.New(admin.Config{}); err == nil {
		t.Error("no router, and no error")
	}
	router, _ := newRouter(t)
	if _, err := admin.New(admin.Config{Router: router, Addr: ":8081"}); err == nil {
		t.Error("everywhere without a token, and no error")
	}
}

func TestDrain(t *testing.T) {
	router, redisServer := newRouter(t)
	h := newHandler(t, admin.Config{Router: router, Addr: "127.0.0.1:8081"})
	for _, tc := range []struct {
		path, body string
		status     int
		reason     string
	}{
		{"/shards/a/drain", `{"reason":"new disk"}`, 204, "no end"},
		{"/shards/a/drain", `{"reason":"new disk","ttl":null}`, 204, "no end, in so many words"},
		{"/shards/a/drain", `{"reason":"new disk","ttl":true}`, 422, "neither text nor number"},
		{"/shards/a/drain", `{"reason":"new disk","ttl":1e30}`, 422, "no duration is so long"},
		{"/shards/a/drain", `{"reason":"half a \ud800"}`, 400, "half of a character"},
		{"/shards/a/drain", `{"reason":"new disk","ttl":"10m"}`, 204, "a duration"},
		{"/shards/a/drain", `{"reason":"new disk","ttl":600}`, 204, "seconds"},
		{"/shards/x/drain", `{"reason":"new disk"}`, 404, "no such shard"},
		{"/shards/a/drain", `{"reason":" "}`, 422, "no reason"},
		{"/shards/x/nodes/b:3306/drain", `{"reason":"new disk"}`, 404, "no such shard"},
		{"/shards/a/nodes/b:3306/drain", `{"reason":"new disk"}`, 404, "no such node"},
		{"/shards/a/nodes/b:3306/drain", `{"reason":" "}`, 422, "no reason"},
		{"/shards/a/drain", `{}`, 422, "no reason"},
		{"/shards/a/drain", `{"reason":"new disk","ttl":"soon"}`, 422, "no duration"},
		{"/shards/a/drain", `{"reason":"new disk","ttl":-5}`, 422, "an end in the past"},
		{"/shards/a/drain", `{"reason":"new disk","ttl":"1ms"}`, 422, "over before it is read"},
		{"/shards/a/drain", `{"reason":7}`, 422, "a number for a reason"},
		{"/shards/a/drain", `drain it`, 400, "no JSON"},
		{"/shards/a/drain", ``, 415, "no body"},
		{"/shards/a/drain", `{"reason":"` + strings.Repeat("x", 8<<10) + `"}`, 413, "too long"},
	} {
		if w := serve(h, request("PUT", tc.path, tc.body)); w.Code != tc.status {
			t.Errorf("%s: %s %.60s: %d %s, want %d", tc.reason, tc.path, tc.body, w.Code, w.Body, tc.status)
		}
	}
	if ttl := redisServer.TTL("db:drain:a"); ttl != 10*time.Minute {
		t.Errorf("the drain's TTL is %v", ttl)
	}
	if s := shardNamed(t, h, "a"); !s.Drained || s.DrainReason != "new disk" {
		t.Errorf("drained: %+v", s)
	}
	if w := serve(h, request("DELETE", "/shards/a/drain", "")); w.Code != http.StatusNoContent {
		t.Errorf("end of the drain: %d", w.Code)
	}
	if s := shardNamed(t, h, "a"); s.Drained {
		t.Errorf("after its end: %+v", s)
	}
	redisServer.Close()
	for _, r := range []*http.Request{request("PUT", "/shards/a/drain", `{"reason":"x"}`), request("DELETE", "/shards/a/drain", "")} {
		if w := serve(h, r); w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s without Redis: %d", r.Method, w.Code)
		}
	}
}

type listed struct {
	Shard       string `json:"shard"`
	Group       string `json:"group"`
	State       string `json:"state"`
	Drained     bool   `json:"drained"`
	DrainReason string `json:"drain_reason"`
	Node        string `json:"node"`
	Pool        struct {
		MaxConns int `json:"max_conns"`
	} `json:"pool"`
}

func shardNamed(t *testing.T, h http.Handler, name string) listed {
	t.Helper()
	w := serve(h, request("GET", "/shards", ""))
	var all []listed
	if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	for _, s := range all {
		if s.Shard == name {
			return s
		}
	}
	t.Fatalf("no shard %s in %s", name, w.Body)
	return listed{}
}

func TestLab(t *testing.T) {
	lab := &fakeLab{}
	h := newHandler(t, admin.Config{Addr: "127.0.0.1:8081", Lab: lab})
	for path, status := range map[string]int{
		"/lab/a/stop":    200,
		"/lab/b/freeze":  200,
		"/lab/a/thaw":    409,
		"/lab/a/explode": 404,
		"/lab/x/stop":    404,
	} {
		if w := serve(h, request("POST", path, "")); w.Code != status {
			t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, status)
		}
	}
	if len(lab.told) != 2 {
		t.Errorf("told: %q", lab.told)
	}
	if w := serve(h, request("GET", "/lab/a/stop", "")); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
	if w := serve(h, request("POST", "/shards", "")); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
	if w := serve(h, request("HEAD", "/shards", "")); w.Code != http.StatusOK {
		t.Errorf("HEAD: %d", w.Code)
	}
	if s := shardNamed(t, h, "a"); s.Node != "up" || s.Group != "default" || s.Pool.MaxConns != 50 {
		t.Errorf("shard: %+v", s)
	}
	without := newHandler(t, admin.Config{Addr: "127.0.0.1:8081"})
	if w := serve(without, request("POST", "/lab/a/stop", "")); w.Code != http.StatusNotFound {
		t.Errorf("without embedded nodes: %d", w.Code)
	}
}

func TestMetrics(t *testing.T) {
	figures := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "figures") })
	h := newHandler(t, admin.Config{Addr: "127.0.0.1:8081", Metrics: figures, Token: "secret"})
	if w := serve(h, request("GET", "/metrics", "")); w.Code != http.StatusUnauthorized {
		t.Errorf("without the token: %d", w.Code)
	}
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer secret") }
	if w := serve(h, request("GET", "/metrics", "", bearer)); w.Code != http.StatusOK || w.Body.String() != "figures" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestPageAndProfiles(t *testing.T) {
	h := newHandler(t, admin.Config{Addr: "127.0.0.1:8081"})
	page := serve(h, request("GET", "/", ""))
	policy := page.Header().Get("Content-Security-Policy")
	if page.Code != http.StatusOK || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("page: %d, policy %s", page.Code, policy)
	}
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/cmdline"} {
		if w := serve(h, request("GET", path, "")); w.Code != http.StatusOK {
			body, _ := io.ReadAll(w.Body)
			t.Errorf("%s: %d %s", path, w.Code, body)
		}
	}
}
