package sessionstore_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5/middleware"

	"github.com/shardhop/shardhop/sessionstore"
)

func TestEarlyHintsAreNotTheAnswer(t *testing.T) {
	var s *site
	s = newSite(t, miniClient(t), map[string]http.HandlerFunc{"/hints": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		s.put(w, r)
		_, _ = w.Write([]byte("done"))
	}})
	hints := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			hints++
			if header.Get("Set-Cookie") != "" {
				t.Error("a cookie before the save")
			}
			return nil
		},
	})
	b := s.browser()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/hints?a=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if hints != 1 || b.token() == "" {
		t.Errorf("%d hints, token %q", hints, b.token())
	}
	if got := b.visit("/get?k=a").body; got != "1" {
		t.Errorf("a is %q", got)
	}
}

func TestFlushBeforeTheFirstWriteKeepsTheSession(t *testing.T) {
	flushes := map[string]func(http.ResponseWriter){
		"Flusher":            func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
		"ResponseController": func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() },
	}
	layers := map[string]func(http.Handler) http.Handler{
		"bare":         func(next http.Handler) http.Handler { return next },
		"chi's logger": quietLogger,
		"Unwrap only":  unwrapOnly,
	}
	for name, flush := range flushes {
		for layer, wrap := range layers {
			t.Run(name+" under "+layer, func(t *testing.T) {
				s := newSite(t, miniClient(t), nil)
				s.url = serve(t, wrap(s.sessions.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/get" {
						s.get(w, r)
						return
					}
					s.put(w, r)
					flush(w)
					s.sessions.Put(r.Context(), "late", "yes")
				}))), s.log)
				b := s.browser()
				b.visit("/put?a=1")
				if got := b.visit("/get?k=a").body; got != "1" {
					t.Errorf("a is %q", got)
				}
				if got := b.visit("/get?k=late").body; got != "yes" {
					t.Errorf("a value stored after the flush is %q", got)
				}
			})
		}
	}
}

var quietLogger = middleware.RequestLogger(&middleware.DefaultLogFormatter{Logger: log.New(io.Discard, "", 0)})

// unwrapOnly hides everything but Unwrap, as some middlewares do.
func unwrapOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(thin{w}, r)
	})
}

type thin struct{ w http.ResponseWriter }

func (t thin) Header() http.Header         { return t.w.Header() }
func (t thin) Write(b []byte) (int, error) { return t.w.Write(b) }
func (t thin) WriteHeader(code int)        { t.w.WriteHeader(code) }
func (t thin) Unwrap() http.ResponseWriter { return t.w }

func TestPanicSavesNothing(t *testing.T) {
	s := newSite(t, miniClient(t), nil)
	s.url = serve(t, recoverer(s.sessions.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.put(w, r)
		panic("half-done")
	}))), s.log)
	if p := s.browser().visit("/?a=1"); p.status != http.StatusInternalServerError || p.setsCookie() {
		t.Errorf("%d, cookie %v", p.status, p.setsCookie())
	}
	if keys := s.keys(); len(keys) != 0 {
		t.Errorf("saved: %v", keys)
	}
}

// recoverer is chi's, without its output.
func recoverer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func TestCommitOfTheHandlerSendsTheCookie(t *testing.T) {
	var s *site
	s = newSite(t, miniClient(t), map[string]http.HandlerFunc{"/own": func(w http.ResponseWriter, r *http.Request) {
		s.put(w, r)
		if _, _, err := s.sessions.Commit(r.Context()); err != nil {
			t.Error(err)
		}
	}})
	b := s.browser()
	b.visit("/own?a=1")
	if got := b.visit("/get?k=a").body; got != "1" {
		t.Errorf("a is %q", got)
	}
}

func TestLoadOfTheEmbeddedManagerNamesTheRemedy(t *testing.T) {
	m, token := stored(t, miniClient(t))
	_, err := m.SessionManager.Load(t.Context(), token)
	if !errors.Is(err, sessionstore.ErrNotLoaded) || !strings.Contains(err.Error(), "LoadAndSave") {
		t.Errorf("error: %v", err)
	}
}

func TestSaveOutlivesTheClient(t *testing.T) {
	var s *site
	g := newGate()
	done := make(chan struct{})
	s = newSite(t, miniClient(t), map[string]http.HandlerFunc{"/slow": func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		g.wait()
		<-r.Context().Done()
		s.put(w, r)
		_, _ = w.Write([]byte("nobody reads this"))
	}})
	b := s.browser()
	b.visit("/put?a=1")
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/slow?a=2", nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-g.arrived
		close(g.opened)
		cancel()
	}()
	if res, err := b.client.Do(req); err == nil {
		_ = res.Body.Close()
		t.Error("the client did not leave")
	}
	<-done
	if got := b.visit("/get?k=a").body; got != "2" {
		t.Errorf("a is %q", got)
	}
}

func TestPlainWriter(t *testing.T) {
	// A writer that can only write, as httptest's: no optional interface is
	// made up.
	m := sessionstore.New(miniClient(t), patient)
	h := m.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := w.(http.Hijacker); ok {
			t.Error("the writer claims to hijack")
		}
		m.Put(r.Context(), "a", 1)
	}))
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if rec.Header().Get("Set-Cookie") == "" {
		t.Error("no cookie")
	}
}

func TestSendfileIsKept(t *testing.T) {
	path := t.TempDir() + "/page"
	if err := os.WriteFile(path, []byte("a page"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, miniClient(t), map[string]http.HandlerFunc{"/file": func(w http.ResponseWriter, r *http.Request) {
		if _, ok := w.(io.ReaderFrom); !ok {
			t.Error("no io.ReaderFrom")
		}
		http.ServeFile(w, r, path)
	}})
	if got := s.browser().visit("/file").body; got != "a page" {
		t.Errorf("got %q", got)
	}
}

func TestHijackedConnection(t *testing.T) {
	var s *site
	s = newSite(t, miniClient(t), map[string]http.HandlerFunc{"/raw": func(w http.ResponseWriter, r *http.Request) {
		s.put(w, r)
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		s.sessions.Put(r.Context(), "late", "yes")
		_, _ = rw.WriteString("HTTP/1.0 200 OK\r\n\r\nraw")
		_ = rw.Flush()
	}})
	b := s.browser()
	b.visit("/put?a=1")
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "GET /raw?a=2 HTTP/1.1\r\nHost: x\r\nCookie: session="+b.token()+"\r\n\r\n")
	if _, err := bufio.NewReader(conn).ReadString('w'); err != nil {
		t.Fatal(err)
	}
	if got := b.visit("/get?k=a").body; got != "2" {
		t.Errorf("a is %q: not saved before the hijack", got)
	}
}
