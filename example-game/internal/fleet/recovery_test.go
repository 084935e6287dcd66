package fleet_test

import (
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
)

// A shard comes back while five hundred players of three instances wait for it:
// it is probed once in an interval until then, and is not felled by them after.
func TestRecoveryUnderACrowd(t *testing.T) {
	const (
		ramp  = 20
		slack = 20 // probes, and connections that were tried and not kept
	)
	f := newFleet(t, alone("SHARD_RAMP=20"))
	got := f.comeBack(500)
	// What the ramp allows grows while the second is measured; see pace.
	seconds := got.measured.Seconds()
	whole := math.Floor(seconds)
	allowed := ramp * (math.Exp2(whole)*(1+seconds-whole) - 1)
	if float64(got.opened) > allowed+slack {
		t.Errorf("%d connections in %v, want at most %.0f and the probes", got.opened, got.measured, allowed)
	}
	// One for the fleet's knowledge; and of each instance one that looks for the
	// end of its holds.
	most := int(got.outage/interval+2) * (1 + len(f.games))
	if got.tried > most {
		t.Errorf("%d connections tried in %v of the outage, want at most %d", got.tried, got.outage, most)
	}
}

// alone is a plan of one shard, whose players have nowhere to go.
func alone(environ ...string) plan {
	return plan{shards: []string{"server_1"}, environ: append([]string{"SHARD_SERVER_1_MAX_CONNS=40"}, environ...)}
}

// recovery is what a shard met that came back to players who waited for it.
type recovery struct {
	tried    int           // connections during a part of the outage,
	outage   time.Duration // which was so long
	opened   int           // connections in the first second,
	measured time.Duration // which was so long
}

// comeBack ends an outage of server_1 while a crowd waits for it. It returns
// when all were served.
func (f *fleet) comeBack(crowd int) (r recovery) {
	f.t.Helper()
	players := []*player{f.join(0), f.join(0), f.join(0), f.join(0), f.join(0)}
	f.set(faultproxy.Silent, "server_1")
	f.await("server_1", "down")
	var asking sync.WaitGroup
	var here atomic.Int64
	for n := range crowd {
		asking.Go(func() {
			here.Add(1)
			p := players[n%len(players)]
			for give := time.Now().Add(soon); p.me(n%len(f.games)).status != http.StatusOK; {
				if time.Now().After(give) {
					f.t.Errorf("%s was not served", p.name)
					return
				}
			}
		})
	}
	lab.Eventually(f.t, soon, "all are here", func() bool { return int(here.Load()) == crowd })

	began, before := time.Now(), f.connects("server_1", (*faultproxy.Proxy).Accepted)
	<-time.After(8 * interval)
	r.tried, r.outage = f.connects("server_1", (*faultproxy.Proxy).Accepted)-before, time.Since(began)

	began, before = time.Now(), f.connects("server_1", (*faultproxy.Proxy).Dialed)
	f.set(faultproxy.Pass, "server_1")
	opened := func() int { return f.connects("server_1", (*faultproxy.Proxy).Dialed) - before }
	lab.Eventually(f.t, soon, "somebody reaches it", func() bool {
		now := time.Now()
		if opened() > 0 {
			return true
		}
		began = now
		return false
	})
	<-time.After(time.Second)
	r.opened, r.measured = opened(), time.Since(began)
	asking.Wait()
	return r
}

// connects is how many connections all instances made to a shard so far.
func (f *fleet) connects(shard string, count func(*faultproxy.Proxy) int) (sum int) {
	for i := range f.games {
		sum += count(f.proxies[i][shard])
	}
	return sum
}
