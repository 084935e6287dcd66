package sessionstore_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/sessionstore"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// scs.New starts it and has no safe way to stop it.
		goleak.IgnoreAnyFunction("github.com/alexedwards/scs/v2/memstore.(*MemStore).startCleanup"),
	)
}

// patient is the configuration of a test that is not about a Redis that is slow:
// the machine may be.
var patient = sessionstore.Config{Timeout: patience}

const patience = 30 * time.Second

// site is a web server with sessions of one manager.
type site struct {
	t        *testing.T
	sessions *sessionstore.Manager
	rdb      redis.UniversalClient
	url      string
	log      *lab.Log // of the http.Server and the manager
}

// newSite serves the calls below and those of extra, which may be nil.
func newSite(t *testing.T, rdb redis.UniversalClient, extra map[string]http.HandlerFunc) *site {
	t.Helper()
	return newSiteWith(t, rdb, patient, extra)
}

func newSiteWith(t *testing.T, rdb redis.UniversalClient, cfg sessionstore.Config, extra map[string]http.HandlerFunc) *site {
	t.Helper()
	s := &site{t: t, rdb: rdb, log: new(lab.Log)}
	cfg.Logger = slog.New(slog.NewTextHandler(s.log, nil))
	s.sessions = sessionstore.New(rdb, cfg)
	mux := http.NewServeMux()
	mux.HandleFunc("/put", s.put)
	mux.HandleFunc("/get", s.get)
	mux.HandleFunc("/claim", s.claim)
	mux.HandleFunc("/renew", s.must(s.sessionsRenew))
	mux.HandleFunc("/logout", s.must(s.sessionsDestroy))
	mux.HandleFunc("/key", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, s.sessions.Key(r.Context()))
	})
	for pattern, handler := range extra {
		mux.HandleFunc(pattern, handler)
	}
	s.url = serve(t, s.sessions.LoadAndSave(mux), s.log)
	return s
}

func serve(t *testing.T, h http.Handler, log io.Writer) string {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(log, nil), slog.LevelError)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

func (s *site) sessionsRenew(ctx context.Context) error   { return s.sessions.RenewToken(ctx) }
func (s *site) sessionsDestroy(ctx context.Context) error { return s.sessions.Destroy(ctx) }

func (s *site) must(fn func(context.Context) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := fn(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}

// put stores ?k=v for every parameter.
func (s *site) put(_ http.ResponseWriter, r *http.Request) {
	for key, values := range r.URL.Query() {
		s.sessions.Put(r.Context(), key, values[0])
	}
}

// get answers the value of ?k.
func (s *site) get(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, s.sessions.GetString(r.Context(), r.URL.Query().Get("k")))
}

// claim moves the route to ?shard and answers the shard that stands.
func (s *site) claim(w http.ResponseWriter, r *http.Request) {
	route, _ := s.sessions.Route(r.Context())
	stands, err := s.sessions.Claim(r.Context(), route.Moved(r.URL.Query().Get("shard")))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	if shown := s.sessions.GetString(r.Context(), "db_server"); shown != stands.Shard {
		http.Error(w, "db_server shows "+shown, http.StatusInternalServerError)
		return
	}
	_, _ = io.WriteString(w, stands.Shard)
}

// browser is one player's client.
type browser struct {
	site   *site
	client *http.Client
}

func (s *site) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &browser{site: s, client: &http.Client{Jar: jar, Transport: transport}}
}

// page is an answer that was read.
type page struct {
	status int
	header http.Header
	body   string
}

func (p page) setsCookie() bool { return len(p.header.Values("Set-Cookie")) > 0 }

func (b *browser) visit(path string) page {
	b.site.t.Helper()
	p, err := b.try(path)
	if err != nil {
		b.site.t.Fatalf("GET %s: %v", path, err)
	}
	return p
}

func (b *browser) try(path string) (page, error) {
	res, err := b.client.Get(b.site.url + path)
	if err != nil {
		return page{}, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return page{res.StatusCode, res.Header, strings.TrimSpace(string(body))}, err
}

// token is what the browser holds as its session cookie.
func (b *browser) token() string {
	for _, cookie := range b.client.Jar.Cookies(b.home()) {
		if cookie.Name == "session" {
			return cookie.Value
		}
	}
	return ""
}

// plant puts a token of nobody's making into the browser.
func (b *browser) plant(token string) {
	b.client.Jar.SetCookies(b.home(), []*http.Cookie{{Name: "session", Value: token}})
}

func (b *browser) home() *url.URL {
	b.site.t.Helper()
	home, err := url.Parse(b.site.url)
	if err != nil {
		b.site.t.Fatal(err)
	}
	return home
}

// key is the browser's session in Redis, asked for over HTTP.
func (b *browser) key() string { return "session:" + b.visit("/key").body }

// keys lists what is in Redis.
func (s *site) keys() []string {
	s.t.Helper()
	keys, err := s.rdb.Keys(s.t.Context(), "*").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	return keys
}

// hash reads a session from Redis.
func (s *site) hash(key string) map[string]string {
	s.t.Helper()
	fields, err := s.rdb.HGetAll(s.t.Context(), key).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	return fields
}

// text is a string as a field of a hash holds it.
func text(s string) string {
	encoded, err := sessionstore.EncodeValue(s)
	if err != nil {
		panic(err)
	}
	return encoded
}

// wantTTLs checks that nothing in Redis lives for ever.
func (s *site) wantTTLs() {
	s.t.Helper()
	for _, key := range s.keys() {
		ttl, err := s.rdb.PTTL(s.t.Context(), key).Result()
		if err != nil || ttl == -1 {
			s.t.Errorf("key %s: TTL %v, %v", key, ttl, err)
		}
	}
}
