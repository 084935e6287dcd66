package httpanswer_test

import (
	"net/http"
	"testing"

	"github.com/shardhop/shardhop/internal/httpanswer"
)

func TestIsInterim(t *testing.T) {
	for _, tt := range []struct {
		status int
		want   bool
		reason string
	}{
		{http.StatusContinue, true, "the body is asked for first"},
		{http.StatusEarlyHints, true, "hints come before the answer"},
		{199, true, "any other of its class"},
		{http.StatusSwitchingProtocols, false, "nothing in HTTP follows it"},
		{http.StatusOK, false, "the answer"},
		{99, false, "below the class"},
	} {
		if got := httpanswer.IsInterim(tt.status); got != tt.want {
			t.Errorf("%d: %v, want %v: %s", tt.status, got, tt.want, tt.reason)
		}
	}
}
