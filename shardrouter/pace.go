package shardrouter

import (
	"math"
	"time"
)

// pace says how fast one instance opens connections to a shard that is back.
// In the first second it may open its share of what the fleet may; what it may
// open doubles with every second.
type pace struct {
	// share is this instance's part of the fleet's first second, in
	// connections. It need not be a whole number, nor as much as one.
	share float64
	// phase, from 0 to 1, sets this instance's connections apart from those
	// that others open at the same pace.
	phase float64
}

// at returns when the n-th connection may be opened, counted from the recovery;
// n begins with 0. After s whole seconds a fleet has opened at most
// Config.Ramp·(2^s-1) connections.
func (p pace) at(n int) time.Duration {
	if n < 0 {
		return 0
	}
	// How many first seconds' worth are open then, and one.
	worth := (float64(n)+1+p.phase)/p.share + 1
	second := math.Floor(math.Log2(worth))
	within := worth/math.Exp2(second) - 1
	return time.Duration((second + within) * float64(time.Second))
}

// length is how long the pace matters to a pool of most connections: until it
// could open all of them within a second.
func (p pace) length(most int) time.Duration {
	doublings := math.Ceil(math.Log2(float64(most) / p.share))
	return time.Duration(max(doublings, 1)) * time.Second
}
