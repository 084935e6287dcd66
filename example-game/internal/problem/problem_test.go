package problem_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/shardhop/shardhop/example-game/internal/problem"
)

func TestPrefersHTML(t *testing.T) {
	for _, tc := range []struct {
		accept []string
		want   bool
		reason string
	}{
		{nil, false, "nothing said"},
		{[]string{"*/*"}, false, "a tie"},
		{[]string{"text/html"}, true, "only HTML"},
		{[]string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, true, "a browser"},
		{[]string{"application/json"}, false, "a program"},
		{[]string{"application/json, text/html;q=0.5"}, false, "JSON ranks higher"},
		{[]string{"application/json;q=0.5", "text/html"}, true, "two headers"},
		{[]string{"text/*, application/json;q=0.9"}, true, "a range"},
		{[]string{"text/*;q=0.9, text/html;q=0, */*;q=0.1"}, false, "the exact name counts more than the range"},
		{[]string{"text/html;q=nonsense"}, false, "nonsense weighs nothing"},
		{[]string{";;;,,,text/html"}, true, "what cannot be read is left out"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Accept"] = tc.accept
		if got := problem.PrefersHTML(r); got != tc.want {
			t.Errorf("%s: %q: %v", tc.reason, tc.accept, got)
		}
	}
}

func TestWrite(t *testing.T) {
	p := problem.New(503, "away", `Away <for> "now"`)
	r := httptest.NewRequest("GET", "/", nil)
	w := httptest.NewRecorder()
	p.Write(w, r)
	if w.Code != 503 || w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if want := `"status":503`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("%s lacks %s", w.Body, want)
	}
	r.Header.Set("Accept", "text/html")
	w = httptest.NewRecorder()
	p.Write(w, r)
	if w.Code != 503 || strings.Contains(w.Body.String(), "<for>") || !strings.Contains(w.Body.String(), "&lt;for&gt;") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if p.Error() != p.Title {
		t.Errorf("error %q", p.Error())
	}
}
