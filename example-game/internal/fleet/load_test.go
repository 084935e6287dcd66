package fleet_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
)

// The tests of this file count what the whole process uses, so that none runs
// beside another.

// base is what a fleet uses while nothing happens.
type base struct {
	goroutines int
	heap       uint64
	open       int // connections to the shards
}

// What a connection costs in goroutines, in the driver and in the proxy, and how
// many more than before may run for other reasons.
const (
	goroutinesPerConn = 5
	someGoroutines    = 30
	someBytes         = 64 << 20
)

func (f *fleet) measure() base {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b := base{goroutines: runtime.NumGoroutine(), heap: m.HeapAlloc}
	for i := range f.games {
		for shard := range f.proxies[i] {
			b.open += f.open(i, shard)
		}
	}
	return b
}

// backTo waits until the fleet uses no more than before, but for connections
// that wait in the pools for the next request.
func (f *fleet) backTo(before base) {
	f.t.Helper()
	lab.Eventually(f.t, soon, "goroutines, connections and memory are back to base", func() bool {
		idle := 0
		for i := range f.games {
			for _, s := range f.shards(i) {
				idle += s.Pool.Idle
				if s.Pool.InUse+s.Pool.Waiting > 0 {
					return false
				}
			}
		}
		http.DefaultClient.CloseIdleConnections()
		for _, p := range f.players {
			p.http.CloseIdleConnections()
		}
		now := f.measure()
		more := max(now.open-before.open, 0)
		return now.open <= max(before.open, idle+len(shards)) &&
			now.goroutines <= before.goroutines+goroutinesPerConn*more+someGoroutines &&
			now.heap <= before.heap+someBytes
	})
}

// Clients that leave in the middle of a statement, or right after asking, say
// nothing about the server.
func TestClientsThatLeaveAreNoEvidence(t *testing.T) {
	const inQuery, afterSending = 50, 1000
	f := newFleet(t, plan{environ: []string{"SHARD_SERVER_1_MAX_CONNS=60"}})
	players, others := f.settle(3, "server_1")
	all := append(players, others...)
	before, routesBefore := f.measure(), routes(all)

	finish := hold(t, players[0])
	ctx, leave := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	for range inQuery {
		asking.Go(func() { players[0].askWith(ctx, 0, "POST", "/api/dig", "") })
	}
	lab.Eventually(t, soon, "all of them wait in the middle of a statement", func() bool {
		return f.shards(0)["server_1"].Pool.InUse == inQuery
	})
	leave()
	asking.Wait()
	finish()
	for n := range afterSending {
		players[n%len(players)].askAndLeave(n % len(f.games))
	}
	met := newTally()
	for i := range f.games {
		for _, p := range all {
			met.add(p.me(i))
		}
	}
	met.allServed(t)
	stayed(t, all, routesBefore)
	if n := f.log.count("to=down"); n > 0 {
		t.Errorf("a shard was called down %d times", n)
	}
	f.await("server_1", "up")
	f.backTo(before)
}

// askAndLeave sends a request and closes the connection at once.
func (p *player) askAndLeave(i int) {
	p.f.t.Helper()
	addr := strings.TrimPrefix(p.f.games[i].URL(), "http://")
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		p.f.t.Fatal(err)
	}
	_, _ = fmt.Fprintf(conn, "GET /api/me HTTP/1.1\r\nHost: %s\r\nCookie: session=%s\r\n\r\n", addr, p.cookie())
	_ = conn.Close()
}

// A frozen shard under a crowd takes nothing from the players of the others, is
// not heaped with probes, and leaves nothing behind.
func TestFrozenShardUnderACrowd(t *testing.T) {
	const crowd, neighbours, turns = 200, 5, 10
	f := newFleet(t, plan{environ: []string{"SHARD_SERVER_1_MAX_CONNS=10"}})
	there, others := f.settle(2, "server_1")
	for i := range f.games {
		for _, p := range append(there, others...) {
			p.me(i)
		}
	}
	before := f.measure()

	f.set(faultproxy.Silent, "server_1") // unlike Freeze it notices which connections are closed
	frozen, rest := newTally(), newTally()
	var asking sync.WaitGroup
	for n := range crowd {
		asking.Go(func() { frozen.add(there[n%len(there)].me(n % len(f.games))) })
	}
	for n := range neighbours {
		asking.Go(func() {
			for range turns {
				rest.add(others[n%len(others)].me(n % len(f.games)))
			}
		})
	}
	asking.Wait()
	rest.allServed(t)
	if rest.longest() > 10*time.Second { // it is milliseconds where the machine has time
		t.Errorf("players of other shards waited up to %v", rest.longest())
	}
	if n := frozen.statuses[http.StatusOK] + frozen.statuses[http.StatusServiceUnavailable]; n != crowd || frozen.longest() > 12*time.Second {
		t.Errorf("the crowd: %v, longest wait %v", frozen, frozen.longest())
	}
	for _, a := range frozen.bad {
		if a.retry == "" {
			t.Errorf("a refusal without Retry-After: %+v", a)
		}
	}
	f.await("server_1", "down")
	lab.Eventually(t, soon, "no connection is left at the frozen shard but a probe's", func() bool { return f.probesOnly("server_1") })
	for end := time.Now().Add(8 * interval); time.Now().Before(end); <-time.After(interval / 10) {
		if !f.probesOnly("server_1") {
			t.Error("probes pile up on the frozen shard")
			break
		}
	}
	f.set(faultproxy.Pass, "server_1")
	f.await("server_1", "up")
	f.backTo(before)
}

// probesOnly reports whether each instance has one connection to a shard at
// most.
func (f *fleet) probesOnly(shard string) bool {
	for i := range f.games {
		if f.open(i, shard) > 1 {
			return false
		}
	}
	return true
}
