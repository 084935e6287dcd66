package fleet_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
)

// Redis is away for sixty intervals, a minute of a fleet in no hurry, while a shard
// dies and comes back. That costs the players the sessions' own answer for as long
// as it lasts, and nothing besides: nobody is logged out, nobody is moved by it, and
// no instance loses sight of the shards.
func TestRedisIsAwayWhileAShardDies(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{})
	players, others := f.settle(2, "server_1")
	all := append(players, others...)
	before := routes(all)
	f.redis.Freeze()
	away := newTally()
	ask := func(round time.Duration) {
		for end := time.Now().Add(round); time.Now().Before(end); {
			for i := range f.games {
				for _, p := range all {
					away.add(p.me(i))
				}
			}
			<-time.After(interval / 10) // players take their time
		}
	}
	ask(20 * interval) // what was read of Redis is old by now
	f.set(faultproxy.Cut, "server_1")
	f.await("server_1", "down")
	ask(40 * interval)
	f.set(faultproxy.Pass, "server_1")
	f.await("server_1", "up")
	if n := away.statuses[http.StatusServiceUnavailable]; n != len(away.waits) {
		t.Errorf("while Redis was away: %v", away)
	}
	if away.longest() > 8*time.Second { // a second is promised, to a machine that has time
		t.Errorf("somebody waited %v for the news that Redis is away", away.longest())
	}
	f.redis.Thaw()
	for i := range f.games {
		for _, p := range all {
			lab.Eventually(t, soon, "everybody plays on, still logged in", func() bool { return p.me(i).status == http.StatusOK })
		}
	}
	stayed(t, all, before)
	if n := f.log.count("health keys can be read again"); n < len(f.games) {
		t.Errorf("%d of %d instances say that Redis is back", n, len(f.games))
	}
}
