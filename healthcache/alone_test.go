package healthcache_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	hc "github.com/shardhop/shardhop/healthcache"
)

// The tests of this file have no Redis and no sockets, and run in virtual time
// with the default timing: interval 1s, probe 3s, suspicion 1s.

// alone starts a cache of its own on shards a and b, and lets the first probes
// end.
func alone(t *testing.T, s *servers) (*hc.Cache, *changes) {
	t.Helper()
	seen := &changes{}
	c := start(t, hc.Config{Shards: []string{"a", "b"}, Probe: s.probe, OnChange: seen.add})
	synctest.Wait()
	return c, seen
}

func wantState(t *testing.T, c *hc.Cache, shard string, want hc.State) {
	t.Helper()
	if v := c.View(shard); v.State != want {
		t.Fatalf("%s is %v (%s), want %v", shard, v.State, v.Reason, want)
	}
}

// pass lets virtual time go by, and everything due in it happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestFirstProbeIsImmediate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers()
		s.say("b", hc.Down)
		c, seen := alone(t, s)
		wantState(t, c, "a", hc.Up)
		wantState(t, c, "b", hc.Down)
		if _, own := seen.states("a"); !slices.Equal(own, []bool{true}) {
			t.Errorf("own = %v", own)
		}
		v := c.View("a")
		if v.RTT <= 0 || v.By == "" || v.Reason != "" || v.CheckedAt.IsZero() {
			t.Errorf("view = %+v", v)
		}
	})
}

func TestDeathAndRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers()
		c, seen := alone(t, s)
		s.say("a", hc.Down)
		pass(time.Second)
		wantState(t, c, "a", hc.Down) // the failure was confirmed at once
		if n := s.count("a"); n != 3 {
			t.Errorf("%d probes, want 3: first, failed, confirming", n)
		}
		s.say("a", hc.Up)
		pass(time.Second)
		wantState(t, c, "a", hc.Down)
		pass(time.Second)
		wantState(t, c, "a", hc.Up)
		seen.want(t, "a", hc.Up, hc.Suspect, hc.Down, hc.Up)
		seen.want(t, "b", hc.Up)
	})
}

func TestFrozenShardDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers()
		c, seen := alone(t, s)
		s.freeze("a")
		pass(5 * time.Second) // a second until the probe, three for it, one to confirm
		wantState(t, c, "a", hc.Down)
		if !strings.HasPrefix(c.View("a").Reason, "no answer within 1s") {
			t.Errorf("reason %q", c.View("a").Reason)
		}
		if n := s.count("b"); n != 6 {
			t.Errorf("b was probed %d times in 5 s, want 6", n)
		}
		pass(30 * time.Second)
		seen.want(t, "a", hc.Up, hc.Suspect, hc.Down) // no flicker while probes take longer than three intervals
		if s.pile() {
			t.Error("two probes at once on one shard")
		}
	})
}

func TestOtherVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers()
		c, seen := alone(t, s)
		s.say("a", hc.ReadOnly)
		s.say("b", hc.Busy)
		pass(time.Second)
		wantState(t, c, "a", hc.ReadOnly)
		wantState(t, c, "b", hc.Busy)
		s.say("a", hc.Up)
		s.say("b", hc.Up)
		pass(time.Second)
		wantState(t, c, "a", hc.ReadOnly)
		wantState(t, c, "b", hc.Up)
		s.say("b", "nonsense")
		pass(2 * time.Second)
		wantState(t, c, "a", hc.Up)
		wantState(t, c, "b", hc.Down)
		if !strings.Contains(c.View("b").Reason, "nonsense") {
			t.Errorf("reason %q", c.View("b").Reason)
		}
		seen.want(t, "a", hc.Up, hc.ReadOnly, hc.Up)
		seen.want(t, "b", hc.Up, hc.Busy, hc.Up, hc.Suspect, hc.Down)
	})
}
