package sessionstore_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
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
	if problem.Status != 503 || problem.Title == "" || problem.Code != "session_unavailable" && problem.Code != "session_not_saved" {
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

// Whose handler has run, and may have changed something elsewhere, is not told
// to come again.
func TestFailedSaveInvitesNoRepeatOfAChange(t *testing.T) {
	mini, rdb := breakable(t)
	s := newSite(t, rdb, nil)
	for method, again := range map[string]bool{http.MethodGet: true, http.MethodPost: false} {
		mini.SetError("")
		handler := s.sessions.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mini.SetError("READONLY You can't write against a read only replica.")
			s.put(w, r)
		}))
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, httptest.NewRequest(method, "/save?a=1", nil))
		if got := rec.Header().Get("Retry-After") != ""; rec.Code != http.StatusServiceUnavailable || got != again {
			t.Errorf("%s: %d, Retry-After %v, want 503 and %v", method, rec.Code, got, again)
		}
		if !strings.Contains(rec.Body.String(), "session_not_saved") {
			t.Errorf("%s: body %q", method, rec.Body)
		}
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

// A route with an epoch that nobody can read is mended by the next claim.
func TestUnreadableEpochHeals(t *testing.T) {
	_, rdb := breakable(t)
	for _, epoch := range []string{"garbage", "", "-1", "007", "99999999999999999999"} {
		s := newSite(t, rdb, nil)
		b := s.browser()
		b.visit("/put?a=1")
		keys, err := rdb.Keys(t.Context(), "session:*").Result()
		if err != nil || len(keys) != 1 {
			t.Fatalf("%d sessions (%v), want 1", len(keys), err)
		}
		rdb.HSet(t.Context(), keys[0], "db_server", "server_1", "home", "server_1", "group", "g", "epoch", epoch)
		handler := s.sessions.LoadAndSave(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			rt, _ := s.sessions.Route(r.Context())
			if stands, err := s.sessions.Claim(r.Context(), rt.Moved("server_2")); err != nil || stands.Shard != "server_2" {
				t.Errorf("epoch %q: the claim gave %+v, %v", epoch, stands, err)
			}
		}))
		req := httptest.NewRequest(http.MethodGet, "/", nil)
		req.AddCookie(&http.Cookie{Name: "session", Value: b.token()})
		handler.ServeHTTP(httptest.NewRecorder(), req)
		if got := rdb.HGet(t.Context(), keys[0], "db_server").Val(); got != "server_2" {
			t.Errorf("epoch %q: the session still names %s", epoch, got)
		}
		rdb.Del(t.Context(), keys...)
	}
}
