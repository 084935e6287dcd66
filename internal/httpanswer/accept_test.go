package httpanswer_test

import (
	"testing"

	"github.com/shardhop/shardhop/internal/httpanswer"
)

func TestPrefersHTML(t *testing.T) {
	tests := []struct {
		accept []string
		want   bool
		reason string
	}{
		{nil, false, "no header is a program"},
		{[]string{"*/*"}, false, "no preference"},
		{[]string{"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"}, true, "a browser"},
		{[]string{"application/json"}, false, "a program"},
		{[]string{"application/json, text/html;q=0.9"}, false, "ranked"},
		{[]string{"application/json;q=0.5", "text/html"}, true, "ranked, in two headers"},
		{[]string{"text/html, application/json"}, false, "a tie is no preference"},
		{[]string{"text/*"}, true, "covers HTML only"},
		{[]string{"text/html;q=0"}, false, "refused"},
		{[]string{"text/html;q=x, application/json;q=0.1"}, false, "malformed elements do not count"},
		{[]string{"text/html;q=2"}, false, "nor those out of range"},
		{[]string{";;,,", "/"}, false, "garbage"},
		{[]string{"text/html;q=0.3, */*;q=0.7"}, false, "JSON is covered by the wildcard"},
		{[]string{"text/html, application/*;q=0.2"}, true, "JSON is covered by its family"},
	}
	for _, tt := range tests {
		if got := httpanswer.PrefersHTML(tt.accept); got != tt.want {
			t.Errorf("%q: %v, want %v: %s", tt.accept, got, tt.want, tt.reason)
		}
	}
}
