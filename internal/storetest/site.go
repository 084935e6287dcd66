package storetest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/shardhop/shardhop/internal/route"
)

// site is a web server with the sessions of one subject.
type site struct {
	Subject
	t   testing.TB
	mux *http.ServeMux
	url string
	log *lockedBuffer // of the http.Server
}

// newSite serves what the cases have in common; each adds its own calls to mux.
func newSite(t testing.TB, open Harness) *site {
	t.Helper()
	return newSiteUnder(t, open, nil)
}

// newSiteUnder puts outer around LoadAndSave.
func newSiteUnder(t testing.TB, open Harness, outer func(http.Handler) http.Handler) *site {
	t.Helper()
	s := &site{Subject: open(t), t: t, mux: http.NewServeMux(), log: new(lockedBuffer)}
	s.mux.HandleFunc("/put", s.put)
	s.mux.HandleFunc("/get", s.get)
	s.mux.HandleFunc("/claim", s.claim)
	s.mux.HandleFunc("/renew", s.call(s.RenewToken))
	s.mux.HandleFunc("/logout", s.call(s.Destroy))
	handler := s.LoadAndSave(s.mux)
	if outer != nil {
		handler = outer(handler)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(s.log, nil), slog.LevelError)
	server.Start()
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// call makes a handler of a method of the manager.
func (s *site) call(fn func(context.Context) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := fn(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}

// put stores every parameter.
func (s *site) put(_ http.ResponseWriter, r *http.Request) {
	for key, values := range r.URL.Query() {
		s.Put(r.Context(), key, values[0])
	}
}

// get answers the value of ?k.
func (s *site) get(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, s.GetString(r.Context(), r.URL.Query().Get("k")))
}

// claim moves the route to ?shard and answers the shard that stands.
func (s *site) claim(w http.ResponseWriter, r *http.Request) {
	if s.Routes == nil {
		http.Error(w, "no routes", http.StatusNotImplemented)
		return
	}
	have, _ := s.Routes.Route(r.Context())
	stands, err := s.Routes.Claim(r.Context(), have.Moved(r.URL.Query().Get("shard")))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	_, _ = io.WriteString(w, stands.Shard)
}

// want checks what the browser's session holds by now: pairs of key and value.
func (s *site) want(b *browser, pairs ...string) {
	s.t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		if got := b.visit("/get?k=" + pairs[i]).body; got != pairs[i+1] {
			s.t.Errorf("%s is %q, want %q", pairs[i], got, pairs[i+1])
		}
	}
}

// wantStored checks how many sessions there are, and that each will end.
func (s *site) wantStored(n int) {
	s.t.Helper()
	if got := s.Stored(s.t); got != n {
		s.t.Errorf("the store holds %d sessions, want %d", got, n)
	}
	if s.Lasting == nil {
		return
	}
	if got := s.Lasting(s.t); got != 0 {
		s.t.Errorf("%d sessions never end", got)
	}
}

// route returns what stands for the session of token.
func (s *site) route(token string) route.Route {
	s.t.Helper()
	r, _ := s.Routes.Route(s.load(token))
	return r
}

// load returns a context with the session of token.
func (s *site) load(token string) context.Context {
	s.t.Helper()
	return load(s.t, s.Subject, token)
}

func load(t testing.TB, m Subject, token string) context.Context {
	t.Helper()
	ctx, err := m.Load(t.Context(), token)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return ctx
}

func commit(ctx context.Context, t testing.TB, m Subject) (token string) {
	t.Helper()
	token, _, err := m.Commit(ctx)
	if err != nil {
		t.Fatalf("Commit: %v", err)
	}
	return token
}

// stored returns the token of a session that holds pairs of key and value.
func stored(t testing.TB, m Subject, pairs ...string) (token string) {
	t.Helper()
	ctx := load(t, m, "")
	for i := 0; i+1 < len(pairs); i += 2 {
		m.Put(ctx, pairs[i], pairs[i+1])
	}
	return commit(ctx, t, m)
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
