package healthcache_test

import (
	"testing"
	"time"

	hc "github.com/shardhop/shardhop/healthcache"
)

// A key is read first, and its end after that: between the two it may go.
func TestEndOfADrain(t *testing.T) {
	for _, tt := range []struct {
		answer, left time.Duration
		failed       bool
		reason       string
	}{
		{time.Minute, time.Minute, false, "it ends"},
		{-1, 0, false, "PTTL's word for a key without an end"},
		{-2, 0, true, "PTTL's word for no key: what was read is no order without an end"},
	} {
		if left, failed := hc.ReadEnd(tt.answer); left != tt.left || failed != tt.failed {
			t.Errorf("%s: %v left, failed: %v; want %v, %v", tt.reason, left, failed, tt.left, tt.failed)
		}
	}
}
