package httpanswer_test

import (
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/httpanswer"
)

func TestRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		wait   time.Duration
		want   string
		reason string
	}{
		{time.Second, "1", "a whole second stays one"},
		{time.Second + 1, "2", "never sooner than asked"},
		{1500 * time.Millisecond, "2", "half a second rounds up too"},
		{time.Minute, "60", "in seconds"},
		{time.Millisecond, "1", "less than a second"},
		{0, "1", "0 would ask for a herd"},
		{-time.Minute, "1", "the header knows no past"},
	} {
		if got := httpanswer.RetryAfter(tt.wait); got != tt.want {
			t.Errorf("%v: %s, want %s: %s", tt.wait, got, tt.want, tt.reason)
		}
	}
}
