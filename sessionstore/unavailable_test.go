package sessionstore_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// wantUnavailable checks that p is one whole 503 and nothing else.
func wantUnavailable(t *testing.T, p page) {
	t.Helper()
	if p.status != http.StatusServiceUnavailable {
		t.Errorf("status %d", p.status)
	}
	if p.setsCookie() || p.header.Get("Location") != "" {
		t.Errorf("headers of the handler's answer went out: %v", p.header)
	}
	if got := p.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type %q", got)
	}
	if got := p.header.Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After %q", got)
	}
	var problem struct {
		Status      int
		Title, Code string
	}
	if err := json.Unmarshal([]byte(p.body), &problem); err != nil {
		t.Fatalf("body %q: %v", p.body, err)
	}
	if problem.Status != 503 || problem.Title == "" || problem.Code != "session_unavailable" {
		t.Errorf("body %q", p.body)
	}
}

func TestRedisFailsAtLoad(t *testing.T) {
	mini, rdb := breakable(t)
	s := newSite(t, rdb, nil)
	b := s.browser()
	b.visit("/put?a=1")
	mini.SetError("LOADING Redis is loading the dataset in memory")

	wantUnavailable(t, b.visit("/get?k=a"))
	if p := s.browser().visit("/get?k=a"); p.status != http.StatusOK {
		t.Errorf("without a cookie: %d", p.status)
	}
	mini.SetError("")
	if got := b.visit("/get?k=a").body; got != "1" {
		t.Errorf("Redis is back, a is %q", got)
	}
	if !strings.Contains(s.log.String(), "LOADING") {
		t.Error("the log does not say why")
	}
}

func TestRedisFailsAtSave(t *testing.T) {
	mini, rdb := breakable(t)
	answers := map[string]func(w http.ResponseWriter){
		"nothing": func(http.ResponseWriter) {},
		"header":  func(w http.ResponseWriter) { w.WriteHeader(http.StatusCreated) },
		"write":   func(w http.ResponseWriter) { _, _ = w.Write([]byte("welcome")) },
		"string":  func(w http.ResponseWriter) { _, _ = io.WriteString(w, "welcome") },
		"both":    func(w http.ResponseWriter) { w.WriteHeader(201); _, _ = w.Write([]byte("welcome")) },
		"flush":   func(w http.ResponseWriter) { w.(http.Flusher).Flush(); _, _ = w.Write([]byte("welcome")) },
		"control": func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() },
		"copy": func(w http.ResponseWriter) {
			_, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader("welcome"))
		},
		"hijack": func(w http.ResponseWriter) {
			if _, _, err := w.(http.Hijacker).Hijack(); err == nil {
				t.Error("hijacked after a failed save")
			}
		},
		"early hints": func(w http.ResponseWriter) { w.WriteHeader(200); w.WriteHeader(http.StatusEarlyHints) },
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			mini.SetError("")
			var s *site
			s = newSite(t, rdb, map[string]http.HandlerFunc{"/save": func(w http.ResponseWriter, r *http.Request) {
				mini.SetError("READONLY You can't write against a read only replica.")
				s.put(w, r)
				w.Header().Set("Content-Length", "7")
				w.Header().Set("Content-Type", "text/plain")
				w.Header().Set("Location", "/elsewhere")
				answer(w)
			}})
			wantUnavailable(t, s.browser().visit("/save?a=1"))
			if log := s.log.String(); strings.Contains(log, "superfluous") {
				t.Errorf("the server complains: %s", log)
			}
		})
	}
}

func TestErrorFuncOfTheApplication(t *testing.T) {
	mini, rdb := breakable(t)
	s := newSite(t, rdb, nil)
	s.sessions.ErrorFunc = func(w http.ResponseWriter, _ *http.Request, _ error) {
		http.Error(w, "come back later", http.StatusTeapot)
	}
	mini.SetError("OOM")
	if p := s.browser().visit("/put?a=1"); p.status != http.StatusTeapot || p.body != "come back later" {
		t.Errorf("%d %q", p.status, p.body)
	}
}
