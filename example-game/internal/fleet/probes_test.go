package fleet_test

import (
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/faultproxy"
)

// While a shard is down, and players ask for it at every instance, the whole
// fleet probes it once in an interval, and with one connection at a time. The
// witnesses of a death look at it too, at once and again in the tenth interval:
// the test ends before that.
func TestOneProbeInAnInterval(t *testing.T) {
	t.Parallel()
	const calm = time.Second // the default interval
	f := newFleet(t, plan{calm: true})
	players, _ := f.settle(3, "server_1")
	f.set(faultproxy.Cut, "server_1") // no pool keeps a connection
	f.set(faultproxy.AcceptThenClose, "server_1")
	began := time.Now()
	stop := play(players, 10*time.Millisecond)
	f.await("server_1", "down")
	<-time.After(calm) // who was asked has looked

	accepted := func() int { return f.connects("server_1", (*faultproxy.Proxy).Accepted) }
	since, before := time.Now(), accepted()
	<-time.After(3 * calm)
	probes, intervals := accepted()-before, float64(time.Since(since))/float64(calm)
	if n := float64(probes); n < intervals-1.5 || n > intervals+1.5 {
		t.Errorf("%d probes in %.1f intervals", probes, intervals)
	}

	f.set(faultproxy.Silent, "server_1")
	most := 0
	for time.Since(since) < 6*calm && time.Since(began) < 8*calm {
		open := 0
		for i := range f.games {
			open += f.open(i, "server_1")
		}
		most = max(most, open)
		<-time.After(calm / 100)
	}
	if most > 1 {
		t.Errorf("%d connections at once to a shard that answers nothing", most)
	}
	stop().allServed(t)
	f.set(faultproxy.Pass, "server_1")
	f.await("server_1", "up")
}
