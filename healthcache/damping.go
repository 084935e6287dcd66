package healthcache

import (
	"math/rand/v2"
	"time"
)

// How a shard that flaps is kept down, in intervals: nothing the first time,
// then twice as long each time up to a bound, and one time is forgotten for
// each minute or so without another.
const (
	firstPenalty = 2
	maxPenalty   = 60
	forgetAfter  = 60
)

// damping keeps a shard down for the longer, the more often it fell. The zero
// value does not.
type damping struct {
	unit   time.Duration // the probe interval
	jitter float64       // between 0 and 1: spreads what fell together
}

func newDamping(unit time.Duration) damping {
	return damping{unit: unit, jitter: rand.Float64()} //nolint:gosec // spreads load, guards nothing
}

// penalty is how long a shard stays down at least that fell for the n-th time,
// give or take a fifth.
func (d damping) penalty(n int) time.Duration {
	if n < 2 {
		return 0
	}
	times := min(firstPenalty<<min(n-2, 10), maxPenalty)
	return time.Duration(float64(times) * float64(d.unit) * (0.8 + 0.4*d.jitter))
}

// remembered is what is left of n falls some time after the last one.
func (d damping) remembered(n int, since time.Duration) int {
	if d.unit <= 0 {
		return 0
	}
	return max(n-int(since/(forgetAfter*d.unit)), 0)
}
