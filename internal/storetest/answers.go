package storetest

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5/middleware"
)

func answerCases() []Case {
	return []Case{
		{"a store that fails at load gives one whole answer and leaves the cookie", failsAtLoad},
		{"a store that fails at save gives one whole answer and leaves the cookie", failsAtSave},
		{"a visitor without a cookie does not notice that the store fails", failsUnnoticed},
		{"early hints are not the answer", earlyHints},
		{"a panic under a recoverer outside saves nothing", panicOutside},
		{"a panic under a recoverer inside is one whole answer", panicInside},
		{"a handler that commits by itself gets its cookie", commitsByItself},
		{"a handler that commits and then stores more loses nothing", commitsAndGoesOn},
		{"a value stored after the answer began is kept", storedLate},
		{"a slow answer sends no cookie for what it did not confirm", slowAnswerAfterRenewal},
	}
}

func failsAtLoad(t testing.TB, open Harness) {
	s := newSite(t, open)
	b := s.browser()
	b.visit("/put?uid=7")
	token := b.token()
	s.Fail(true)
	s.wantOutage(b.visit("/get?k=uid"))
	s.Fail(false)
	if b.token() != token {
		t.Error("the outage cost the cookie")
	}
	s.want(b, "uid", "7")
}

func failsAtSave(t testing.TB, open Harness) {
	s := newSite(t, open)
	s.mux.HandleFunc("/breaks", func(w http.ResponseWriter, r *http.Request) {
		s.put(w, r)
		s.Fail(true)
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Length", "16")
		_, _ = io.WriteString(w, "<p>handler's</p>")
		_, _ = io.WriteString(w, "more")
	})
	b := s.browser()
	b.visit("/put?uid=7")
	token := b.token()
	s.wantOutage(b.visit("/breaks?a=1"))
	s.Fail(false)
	if b.token() != token {
		t.Error("the outage cost the cookie")
	}
	s.want(b, "uid", "7", "a", "")
	if log := s.log.String(); log != "" {
		t.Errorf("the server complains: %s", log)
	}
}

// wantOutage checks the answer to a request whose session is out of reach.
func (s *site) wantOutage(p page) {
	s.t.Helper()
	if p.status != http.StatusServiceUnavailable || p.header.Get("Retry-After") == "" || p.setsCookie() {
		s.t.Errorf("%d, Retry-After %q, cookie %q", p.status, p.header.Get("Retry-After"), p.header["Set-Cookie"])
	}
	if strings.Contains(p.body, "handler") {
		s.t.Errorf("the handler's answer is behind the error: %q", p.body)
	}
}

func failsUnnoticed(t testing.TB, open Harness) {
	s := newSite(t, open)
	s.Fail(true)
	defer s.Fail(false)
	if p := s.browser().visit("/get?k=a"); p.status != http.StatusOK {
		t.Errorf("%d %s", p.status, p.body)
	}
}

func earlyHints(t testing.TB, open Harness) {
	s := newSite(t, open)
	s.mux.HandleFunc("/hints", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		s.put(w, r)
		w.WriteHeader(http.StatusCreated)
	})
	hints := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(_ int, header textproto.MIMEHeader) error {
			hints++
			if header.Get("Set-Cookie") != "" {
				t.Error("a cookie went out before the save")
			}
			return nil
		},
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/hints?a=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	b := s.browser()
	p, err := b.do(req)
	if err != nil || p.status != http.StatusCreated || hints != 1 || !p.setsCookie() {
		t.Errorf("%d after %d hints, cookie %q, %v", p.status, hints, p.header["Set-Cookie"], err)
	}
	s.want(b, "a", "1")
}

// panicking serves a handler that stores something and panics.
func panicking(s *site) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.put(w, r)
		panic("half-done")
	}
}

// quiet keeps a recoverer from printing the stack.
func quiet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entry := (&middleware.DefaultLogFormatter{Logger: discard{}, NoColor: true}).NewLogEntry(r)
		next.ServeHTTP(w, middleware.WithLogEntry(r, silent{entry}))
	})
}

func panicOutside(t testing.TB, open Harness) {
	s := newSiteUnder(t, open, func(next http.Handler) http.Handler { return quiet(middleware.Recoverer(next)) })
	s.mux.HandleFunc("/panic", panicking(s))
	b := s.browser()
	b.visit("/put?uid=7&a=1")
	if p := b.visit("/panic?a=2"); p.status != http.StatusInternalServerError || p.setsCookie() {
		t.Errorf("%d, cookie %q", p.status, p.header["Set-Cookie"])
	}
	s.want(b, "uid", "7", "a", "1")
}

func panicInside(t testing.TB, open Harness) {
	s := newSite(t, open)
	s.mux.Handle("/panic", quiet(middleware.Recoverer(panicking(s))))
	b := s.browser()
	b.visit("/put?uid=7")
	if p := b.visit("/panic?a=2"); p.status != http.StatusInternalServerError {
		t.Errorf("%d %s", p.status, p.body)
	}
	s.want(b, "uid", "7")
	s.wantStored(1)
	if log := s.log.String(); log != "" {
		t.Errorf("the server complains: %s", log)
	}
}

func commitsByItself(t testing.TB, open Harness) {
	s := newSite(t, open)
	s.mux.HandleFunc("/own", func(w http.ResponseWriter, r *http.Request) {
		s.put(w, r)
		if _, _, err := s.Commit(r.Context()); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, "done")
	})
	b := s.browser()
	if p := b.visit("/own?a=1"); p.status != http.StatusOK || len(p.header["Set-Cookie"]) != 1 {
		t.Errorf("%d, cookies %q", p.status, p.header["Set-Cookie"])
	}
	s.want(b, "a", "1")
	s.wantStored(1)
}

func commitsAndGoesOn(t testing.TB, open Harness) {
	s := newSite(t, open)
	s.mux.HandleFunc("/own", func(w http.ResponseWriter, r *http.Request) {
		s.put(w, r)
		if _, _, err := s.Commit(r.Context()); err != nil {
			t.Error(err)
		}
		s.Put(r.Context(), "b", "2")
		if err := s.RenewToken(r.Context()); err != nil {
			t.Error(err)
		}
		s.Put(r.Context(), "c", "3")
	})
	b := s.browser()
	b.visit("/own?a=1")
	s.want(b, "a", "1", "b", "2", "c", "3")
	s.wantStored(1)
}

func storedLate(t testing.TB, open Harness) {
	s := newSite(t, open)
	s.mux.HandleFunc("/late", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "done")
		s.put(w, r)
	})
	b := s.browser()
	b.visit("/put?uid=7")
	b.visit("/late?a=1")
	s.want(b, "uid", "7", "a", "1")
}

func slowAnswerAfterRenewal(t testing.TB, open Harness) {
	s := newSite(t, open)
	s.Settings.IdleTimeout = soon // every request would send the cookie again
	slow := s.gated("/slow", s.get)
	b := s.browser()
	b.visit("/put?uid=7")
	answer := slow.during(b, "/slow?k=uid", func() { b.visit("/renew") })
	if answer.setsCookie() {
		t.Errorf("the slow answer sets %q", answer.header["Set-Cookie"])
	}
}

// discard is a logger that says nothing.
type discard struct{}

func (discard) Print(...any) {}

// silent is a log entry that leaves panics out.
type silent struct{ middleware.LogEntry }

func (silent) Panic(any, []byte) {}
