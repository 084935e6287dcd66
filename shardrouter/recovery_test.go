package shardrouter_test

import (
	"sync"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// A shard comes back while five hundred players of three instances wait for it.
// It is not felled by them, and all are served.
func TestRecoveryUnderAHerd(t *testing.T) {
	const (
		ramp   = 20
		probes = 20 // of three instances within a second, with slack
	)
	if got := connectsAfterRecovery(t, ramp); got > ramp+probes {
		t.Errorf("%d connections in the first second, want at most %d and the probes", got, ramp)
	}
}

// BenchmarkRecovery prints what a shard is opened in the first second after a
// recovery, probes included.
func BenchmarkRecovery(b *testing.B) {
	total := 0
	for b.Loop() {
		total += connectsAfterRecovery(b, 0)
	}
	b.ReportMetric(float64(total)/float64(b.N), "connects/first-second")
}

// connectsAfterRecovery has a shard come back while five hundred players of
// three instances wait for it, and counts what reaches it in the second after
// the first connection. It returns when all players were served.
func connectsAfterRecovery(t testing.TB, ramp int) int {
	t.Helper()
	const players = 500
	rdb := lab.Redis(t).Client()
	path := faultproxy.New(t, server.Addr())
	var routers []*shardrouter.Router
	for _, name := range []string{"one", "two", "three"} {
		routers = append(routers, instance(t, rdb, name, map[string]string{"server_1": path.Addr()}, []string{"server_1"},
			func(c *shardrouter.Config) { c.Ramp, c.ProbeTimeout = ramp, time.Second }))
	}
	for _, r := range routers {
		lab.Eventually(t, 15*time.Second, "all know of each other", func() bool { return r.Health().Instances() == len(routers) })
	}
	path.SetMode(faultproxy.Silent)
	for _, r := range routers {
		lab.Eventually(t, 15*time.Second, "the shard is down", func() bool {
			return r.Health().View("server_1").State == healthcache.Down
		})
	}

	var wg sync.WaitGroup
	for i := range players {
		wg.Go(func() { play(t, routers[i%len(routers)]) })
	}
	before := path.Dialed()
	path.SetMode(faultproxy.Pass)
	lab.Eventually(t, 15*time.Second, "somebody reaches it", func() bool { return path.Dialed() > before })
	second := time.NewTimer(time.Second)
	<-second.C
	count := path.Dialed() - before
	wg.Wait()
	return count
}

// play is one player who comes again until he was served once.
func play(t testing.TB, r *shardrouter.Router) {
	for give := time.Now().Add(time.Minute); ; {
		l, err := r.Lease(t.Context(), on("server_1"), "")
		if err == nil {
			var zero int
			if err := l.Conn().QueryRowContext(t.Context(), "SELECT SLEEP(0.05)").Scan(&zero); err != nil {
				t.Errorf("the lease does not work: %v", err)
			}
			l.Release()
			return
		}
		if time.Now().After(give) {
			t.Errorf("not served within a minute: %v", err)
			return
		}
	}
}

// The end of a drain lets everybody back in at once; the connections follow at
// the pace of the ramp.
func TestUndrainIsRamped(t *testing.T) {
	const ramp = 5
	f := newFleet(t, 1, func(c *shardrouter.Config) { c.Ramp = ramp })
	if err := f.Health().Drain(t.Context(), "server_1", "upgrade", 0); err != nil {
		t.Fatal(err)
	}
	f.lease(t, "server_1").Release() // its only shard keeps serving
	if err := f.Health().Undrain(t.Context(), "server_1"); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	var leases []*shardrouter.Lease
	for range ramp + 1 {
		leases = append(leases, f.lease(t, "server_1"))
	}
	if took := time.Since(start); took < time.Second {
		t.Errorf("%d connections were opened within %v, want %d in the first second", len(leases), took, ramp)
	}
	for _, l := range leases {
		l.Release()
	}
}

// Nothing is held back at the start of a process.
func TestFirstBootIsNotRamped(t *testing.T) {
	f := newFleet(t, 1, func(c *shardrouter.Config) { c.Ramp = 1 })
	start := time.Now()
	for range 10 {
		defer f.lease(t, "server_1").Release()
	}
	if took := time.Since(start); took > 3*time.Second { // a ramp of one allows three by then
		t.Errorf("ten connections took %v", took)
	}
}
