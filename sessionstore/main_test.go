package sessionstore_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
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

// site is a web server with sessions of one manager.
type site struct {
	t        *testing.T
	sessions *sessionstore.Manager
	rdb      redis.UniversalClient
	url      string
	log      *lockedBuffer // of the http.Server and the manager
}

// newSite serves the calls below and those of extra, which may be nil.
func newSite(t *testing.T, rdb redis.UniversalClient, extra map[string]http.HandlerFunc) *site {
	t.Helper()
	return newSiteWith(t, rdb, sessionstore.Config{}, extra)
}

func newSiteWith(t *testing.T, rdb redis.UniversalClient, cfg sessionstore.Config, extra map[string]http.HandlerFunc) *site {
	t.Helper()
	s := &site{t: t, rdb: rdb, log: new(lockedBuffer)}
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
	req, err := http.NewRequestWithContext(b.site.t.Context(), http.MethodGet, b.site.url, nil)
	if err != nil {
		b.site.t.Fatal(err)
	}
	for _, cookie := range b.client.Jar.Cookies(req.URL) {
		if cookie.Name == "session" {
			return cookie.Value
		}
	}
	return ""
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

// wantTTLs checks that nothing in Redis lives for ever.
func (s *site) wantTTLs() {
	s.t.Helper()
	for _, key := range s.keys() {
		ttl, err := s.rdb.PTTL(s.t.Context(), key).Result()
		if err != nil || ttl <= 0 {
			s.t.Errorf("key %s: TTL %v, %v", key, ttl, err)
		}
	}
}

// eachRedis runs test against miniredis and a real Redis, and against both with
// every script sent twice.
func eachRedis(t *testing.T, test func(t *testing.T, rdb redis.UniversalClient)) {
	t.Helper()
	for _, repeat := range []bool{false, true} {
		run := func(rdb *redis.Client) func(t *testing.T) {
			return func(t *testing.T) {
				if repeat {
					rdb.AddHook(twice{})
				}
				test(t, rdb)
			}
		}
		name := ""
		if repeat {
			name = ", scripts twice"
		}
		t.Run("miniredis"+name, run(miniClient(t)))
		t.Run("redis"+name, run(client(t, lab.Redis(t).Addr())))
	}
}

func miniClient(t *testing.T) *redis.Client {
	t.Helper()
	return client(t, miniredis.RunT(t).Addr())
}

func client(t *testing.T, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// twice sends every script and every delete again, as go-redis does when an
// answer got lost: the caller sees what the second run says.
type twice struct{ passthrough }

func (twice) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch cmd.Name() {
		case "eval", "evalsha", "del":
			_ = next(ctx, redis.NewCmd(ctx, cmd.Args()...))
		}
		return next(ctx, cmd)
	}
}

// passthrough is a redis.Hook that does nothing.
type passthrough struct{}

func (passthrough) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (passthrough) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (passthrough) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// counter counts round trips, and the commands in them.
type counter struct {
	passthrough
	trips atomic.Int64

	mu    sync.Mutex
	names []string
}

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count(cmd)
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.count(cmds...)
		return next(ctx, cmds)
	}
}

func (c *counter) count(cmds ...redis.Cmder) {
	c.trips.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cmd := range cmds {
		c.names = append(c.names, cmd.Name())
	}
}

// reset returns what was counted since the last reset.
func (c *counter) reset() (trips int64, names string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	names, c.names = strings.Join(c.names, " "), nil
	return c.trips.Swap(0), names
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// gate holds a handler until it is opened.
type gate struct {
	arrived chan struct{}
	opened  chan struct{}
}

func newGate() *gate { return &gate{make(chan struct{}), make(chan struct{})} }

// wait is called by the handler, which has loaded its session.
func (g *gate) wait() {
	close(g.arrived)
	<-g.opened
}

// during sends path, lets fn run while its handler waits, and returns its
// answer.
func (g *gate) during(b *browser, path string, fn func()) page {
	b.site.t.Helper()
	answered := make(chan page, 1)
	failed := make(chan error, 1)
	go func() {
		p, err := b.try(path)
		if err != nil {
			failed <- err
			return
		}
		answered <- p
	}()
	select {
	case <-g.arrived:
	case err := <-failed:
		b.site.t.Fatal(err)
	}
	fn()
	close(g.opened)
	select {
	case p := <-answered:
		return p
	case err := <-failed:
		b.site.t.Fatal(err)
		return page{}
	}
}

// breakable returns a Redis that can be told to fail.
func breakable(t *testing.T) (*miniredis.Miniredis, *redis.Client) {
	t.Helper()
	mini := miniredis.RunT(t)
	return mini, client(t, mini.Addr())
}

// failing lets some commands pass, fails one, and lets all pass again.
type failing struct {
	passthrough
	passes atomic.Int64 // before the one that fails; negative: none fails
}

func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if f.passes.Load() >= 0 && f.passes.Add(-1) < 0 {
			err := errors.New("connection lost")
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}
