package storetest

import (
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

func cookieCases() []Case {
	return []Case{
		{"the cookie has the attributes that are set", cookieAttributes},
		{"a session is remembered only on demand", rememberMe},
		{"the cookie of a destroyed session ends", cookieOfADestroyedSession},
		{"only what changed sends a cookie", unchangedSendsNoCookie},
		{"caches are told of the cookie", cacheHeaders},
		{"the cookie goes out however the handler answers", everyWayOfAnswering},
	}
}

// cookie returns the session's cookie in an answer.
func (s *site) cookie(p page) *http.Cookie {
	s.t.Helper()
	for _, cookie := range (&http.Response{Header: p.header}).Cookies() {
		if cookie.Name == s.Settings.Cookie.Name {
			return cookie
		}
	}
	s.t.Fatalf("no cookie %q in %q", s.Settings.Cookie.Name, p.header["Set-Cookie"])
	return nil
}

func cookieAttributes(t testing.TB, open Harness) {
	s := newSite(t, open)
	s.wantCookie(http.Cookie{Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}, true)

	set := &s.Settings.Cookie
	set.Name, set.Domain, set.Path = "player", "example.com", "/game"
	set.HttpOnly, set.Secure, set.Partitioned = false, true, true
	set.SameSite, set.Persist = http.SameSiteStrictMode, false
	s.wantCookie(http.Cookie{
		Domain: "example.com", Path: "/game", Secure: true, Partitioned: true, SameSite: http.SameSiteStrictMode,
	}, false)
}

// wantCookie checks the cookie of a new session, which lasts as long as the
// session or as the browser runs.
func (s *site) wantCookie(want http.Cookie, lasts bool) {
	s.t.Helper()
	got := s.cookie(s.browser().visit("/put?a=1"))
	has := http.Cookie{
		Domain: got.Domain, Path: got.Path, HttpOnly: got.HttpOnly, Secure: got.Secure,
		Partitioned: got.Partitioned, SameSite: got.SameSite,
	}
	if !reflect.DeepEqual(has, want) {
		s.t.Errorf("the cookie is %v, want %v", &has, &want)
	}
	day := got.MaxAge > 86000 && time.Until(got.Expires) > 23*time.Hour
	if day != lasts || !lasts && (got.MaxAge != 0 || !got.Expires.IsZero()) {
		s.t.Errorf("Max-Age %d, Expires %v; lasting: %v", got.MaxAge, got.Expires, lasts)
	}
}

func rememberMe(t testing.TB, open Harness) {
	s := newSite(t, open)
	s.Settings.Cookie.Persist = false
	s.mux.HandleFunc("/remember", func(_ http.ResponseWriter, r *http.Request) {
		s.RememberMe(r.Context(), r.URL.Query().Get("on") == "1")
	})
	b := s.browser()
	if got := s.cookie(b.visit("/put?a=1")); got.MaxAge != 0 {
		t.Errorf("remembered unasked: %v", got)
	}
	if got := s.cookie(b.visit("/remember?on=1")); got.MaxAge < 86000 {
		t.Errorf("not remembered: %v", got)
	}
	if got := s.cookie(b.visit("/put?a=2")); got.MaxAge < 86000 {
		t.Errorf("forgotten at the next save: %v", got)
	}
	if got := s.cookie(b.visit("/remember?on=0")); got.MaxAge != 0 {
		t.Errorf("still remembered: %v", got)
	}
}

func cookieOfADestroyedSession(t testing.TB, open Harness) {
	s := newSite(t, open)
	b := s.browser()
	b.visit("/put?a=1")
	token := b.token()
	answer := b.visit("/logout")
	if got := s.cookie(answer); got.Value != "" || got.MaxAge >= 0 || !got.Expires.Before(time.Now()) {
		t.Errorf("cookie: %v", got)
	}
	if b.token() != "" {
		t.Error("the browser still has a token")
	}
	b.plant(token)
	s.want(b, "a", "")
	s.wantStored(0)
}

func unchangedSendsNoCookie(t testing.TB, open Harness) {
	s := newSite(t, open)
	b := s.browser()
	if p := b.visit("/get?k=a"); p.setsCookie() || b.token() != "" {
		t.Errorf("a visitor who stores nothing gets %q", p.header["Set-Cookie"])
	}
	s.wantStored(0)
	if p := b.visit("/put?a=1"); !p.setsCookie() {
		t.Error("a new session without a cookie")
	}
	if p := b.visit("/get?k=a"); p.setsCookie() {
		t.Errorf("a read sets %q", p.header["Set-Cookie"])
	}
	token := b.token()
	if p := b.visit("/put?a=2"); !p.setsCookie() || b.token() != token {
		t.Error("a change sends no cookie, or another token")
	}
	s.wantStored(1)
}

func cacheHeaders(t testing.TB, open Harness) {
	s := newSite(t, open)
	b := s.browser()
	for _, path := range []string{"/put?a=1", "/get?k=a", "/logout"} {
		p := b.visit(path)
		if !strings.Contains(strings.Join(p.header["Vary"], ","), "Cookie") {
			t.Errorf("%s: Vary is %q", path, p.header["Vary"])
		}
		noCache := strings.Contains(strings.Join(p.header["Cache-Control"], ","), `no-cache="Set-Cookie"`)
		if p.setsCookie() && !noCache {
			t.Errorf("%s: Cache-Control is %q", path, p.header["Cache-Control"])
		}
	}
}

func everyWayOfAnswering(t testing.TB, open Harness) {
	ways := map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		status int
		body   string
	}{
		"nothing":   {func(http.ResponseWriter, *http.Request) {}, http.StatusOK, ""},
		"status":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, http.StatusNoContent, ""},
		"bytes":     {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("done")) }, http.StatusOK, "done"},
		"string":    {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") }, http.StatusOK, "done"},
		"copy":      {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, strings.NewReader("done")) }, http.StatusOK, "done"},
		"error":     {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) }, http.StatusTeapot, "no"},
		"redirects": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/get?k=a", http.StatusSeeOther) }, http.StatusOK, "1"},
	}
	s := newSite(t, open)
	for name, way := range ways {
		s.mux.HandleFunc("/way/"+name, func(w http.ResponseWriter, r *http.Request) {
			s.Put(r.Context(), "a", "1")
			way.answer(w, r)
		})
		b := s.browser()
		p := b.visit("/way/" + name)
		if p.status != way.status || p.body != way.body {
			t.Errorf("%s: %d %q", name, p.status, p.body)
		}
		s.want(b, "a", "1")
	}
	if log := s.log.String(); log != "" {
		t.Errorf("the server complains: %s", log)
	}
}
