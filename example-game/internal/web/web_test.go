package web_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/shardhop/shardhop/example-game/internal/web"
)

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

var (
	links  = regexp.MustCompile(`(?:src|href)="([^"]*)"`)
	inline = regexp.MustCompile(`(?i)<script>|<style|\son[a-z]+=|\sstyle=|javascript:`)
)

// What the policy forbids would not work in a browser, and tests would not see.
func TestPagesFitThePolicy(t *testing.T) {
	for name, page := range map[string]http.Handler{
		"game":              web.Game([]string{"default"}),
		"game with realms":  web.Game([]string{"east", "<west>"}),
		"admin":             web.Admin(http.StatusOK),
		"admin, locked out": web.Admin(http.StatusUnauthorized),
	} {
		body := get(page, "/").Body.String()
		if found := inline.FindString(body); found != "" {
			t.Errorf("%s: %q is inline", name, found)
		}
		for _, link := range links.FindAllStringSubmatch(body, -1) {
			if !strings.HasPrefix(link[1], "/assets/") {
				t.Errorf("%s: %s is not ours", name, link[1])
			} else if w := get(web.Assets(), link[1]); w.Code != http.StatusOK || w.Body.Len() == 0 {
				t.Errorf("%s: %s: %d", name, link[1], w.Code)
			}
		}
	}
}

func TestRealmsAreOfferedWhereThereIsAChoice(t *testing.T) {
	if body := get(web.Game([]string{"default"}), "/").Body.String(); strings.Contains(body, "<select") {
		t.Error("one realm, and a choice")
	}
	body := get(web.Game([]string{"east", "<west>"}), "/").Body.String()
	if !strings.Contains(body, "<option>east</option><option>&lt;west&gt;</option>") {
		t.Error("two realms, and no choice, or one that is not escaped")
	}
}

func TestSecureHeaders(t *testing.T) {
	h := get(web.SecureHeaders(web.Assets()), "/assets/style.css").Header()
	for name, want := range map[string]string{
		"Content-Security-Policy": "frame-ancestors 'none'",
		"X-Content-Type-Options":  "nosniff",
		"X-Frame-Options":         "DENY",
		"Referrer-Policy":         "no-referrer",
	} {
		if !strings.Contains(h.Get(name), want) {
			t.Errorf("%s: %q, want %s", name, h.Get(name), want)
		}
	}
	if strings.Contains(h.Get("Content-Security-Policy"), "unsafe") {
		t.Error("the policy allows what is unsafe")
	}
}

func TestNoDirectoryIsListed(t *testing.T) {
	for _, path := range []string{"/assets/", "/assets", "/assets/none.js", "/assets/../pages/admin.html"} {
		if w := get(web.Assets(), path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
