package httpanswer

import (
	"strconv"
	"time"
)

// RetryAfter is the value of a Retry-After header that asks a client to wait
// for d: whole seconds, rounded up, and one at least.
func RetryAfter(d time.Duration) string {
	return strconv.Itoa(max(1, int((d+time.Second-1)/time.Second)))
}
