package lab

import (
	"testing"
	"time"
)

// pollInterval is the pause between two looks at something that is awaited.
const pollInterval = 10 * time.Millisecond

// Eventually polls cond until it holds, and ends the test when that takes
// longer than within. what names the awaited thing in the failure.
func Eventually(t testing.TB, within time.Duration, what string, cond func() bool) {
	t.Helper()
	if !poll(within, cond) {
		t.Fatalf("not within %v: %s", within, what)
	}
}

// poll reports whether cond came to hold within the time. A look that begins
// when the time is over is the last, so that a busy machine gets one as well.
func poll(within time.Duration, cond func() bool) bool {
	deadline := time.Now().Add(within)
	for {
		last := time.Now().After(deadline)
		if cond() {
			return true
		}
		if last {
			return false
		}
		time.Sleep(pollInterval)
	}
}
