package healthcache_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
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
	time.Sleep(d) // virtual: returns at once
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

func TestSuspicionConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers()
		c, seen := alone(t, s)
		pass(500 * time.Millisecond)
		s.freeze("a")
		began := time.Now()
		c.Suspect("a", "read: connection reset")
		wantState(t, c, "a", hc.Suspect)
		if v := c.View("a"); v.Reason != "read: connection reset" {
			t.Errorf("reason %q", v.Reason)
		}
		v := c.Settle(t.Context(), "a")
		if v.State != hc.Down || time.Since(began) != time.Second {
			t.Errorf("settled as %v after %v, want down after 1s", v.State, time.Since(began))
		}
		synctest.Wait()
		seen.want(t, "a", hc.Up, hc.Suspect, hc.Down)
		if v := c.Settle(t.Context(), "a"); v.State != hc.Down {
			t.Errorf("nothing to settle, and %v", v.State)
		}
		if _, own := seen.states("a"); !slices.Equal(own, []bool{true, true, true}) {
			t.Errorf("own = %v", own)
		}
	})
}

func TestSuspicionDispelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers()
		c, seen := alone(t, s)
		pass(500 * time.Millisecond)
		c.Suspect("a", "slow statement")
		if v := c.Settle(t.Context(), "a"); v.State != hc.Up || v.Reason != "" {
			t.Errorf("settled as %v (%s)", v.State, v.Reason)
		}
		synctest.Wait()
		seen.want(t, "a", hc.Up, hc.Suspect, hc.Up)
		if n := s.count("a"); n != 2 {
			t.Errorf("%d probes, want 2: the first and the suspicion's", n)
		}
	})
}

func TestSuspicionShortensARunningProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers()
		c, _ := alone(t, s)
		s.freeze("a")
		pass(1500 * time.Millisecond) // the periodic probe has 2.5 s left
		began := time.Now()
		c.Suspect("a", "i/o timeout")
		for range 100 {
			c.Suspect("a", "i/o timeout")
		}
		pass(999 * time.Millisecond)
		wantState(t, c, "a", hc.Suspect)
		if n := s.count("a"); n != 2 {
			t.Errorf("%d probes, want 2: the running one was joined", n)
		}
		if v := c.Settle(t.Context(), "a"); v.State != hc.Down {
			t.Errorf("settled as %v", v.State)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %v, want 1s", took)
		}
	})
}

func TestSuspicionDoesNotLengthenARunningProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers()
		c, _ := alone(t, s)
		s.freeze("a")
		pass(3800 * time.Millisecond) // 200 ms left
		began := time.Now()
		c.Suspect("a", "i/o timeout")
		c.Settle(t.Context(), "a")
		if took := time.Since(began); took != 200*time.Millisecond {
			t.Errorf("took %v, want 200ms", took)
		}
	})
}

func TestSuspicionStormIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers()
		c, _ := alone(t, s)
		for range 1000 {
			c.Suspect("a", "broken pipe")
			pass(time.Millisecond)
		}
		if n := s.count("a"); n > 22 {
			t.Errorf("%d probes in a second, want at most one each 50 ms", n)
		}
		c.Settle(t.Context(), "a")
		wantState(t, c, "a", hc.Up)
	})
}

func TestDownIsNotSuspected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers()
		s.say("a", hc.Down)
		c, seen := alone(t, s)
		c.Suspect("a", "refused")
		c.Suspect("nobody", "unknown names are ignored")
		wantState(t, c, "a", hc.Down)
		if v := c.Settle(t.Context(), "a"); v.State != hc.Down {
			t.Errorf("settled as %v", v.State)
		}
		synctest.Wait()
		if n := s.count("a"); n != 1 {
			t.Errorf("%d probes", n)
		}
		seen.want(t, "a", hc.Down)
	})
}

func TestCheckTriesTheLastOneStanding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers()
		s.say("a", hc.Down)
		c, _ := alone(t, s)
		pass(100 * time.Millisecond)
		if v := c.Check(t.Context(), "a"); v.State != hc.Down {
			t.Errorf("checked as %v", v.State)
		}
		s.say("a", hc.Up)
		pass(100 * time.Millisecond)
		if v := c.Check(t.Context(), "a"); v.State != hc.Up {
			t.Errorf("checked as %v, want up by one success", v.State)
		}
		if v := c.Check(t.Context(), "nobody"); v.State != hc.Unknown {
			t.Errorf("an unknown name is %v", v.State)
		}
	})
}

func TestCheckIsSingleFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers()
		c, _ := alone(t, s)
		pass(100 * time.Millisecond)
		s.freeze("a")
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if v := c.Check(context.Background(), "a"); v.State != hc.Down {
					t.Errorf("checked as %v", v.State)
				}
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if v := c.Check(ctx, "a"); v.State != hc.Up {
			t.Errorf("an impatient caller is told %v", v.State)
		}
		pass(3500 * time.Millisecond)
		if n := s.count("a"); n != 3 {
			t.Errorf("%d probes, want 3: first, checked, confirming", n)
		}
		wg.Wait()
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

func TestDrainInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers()
		c, seen := alone(t, s)
		pass(500 * time.Millisecond)
		if err := c.Drain(t.Context(), "a", "new disks", 5*time.Second); err != nil {
			t.Fatal(err)
		}
		v := c.View("a")
		if v.State != hc.Draining || !v.Drained || v.DrainReason != "new disks" {
			t.Errorf("view = %+v", v)
		}
		pass(6 * time.Second)
		wantState(t, c, "a", hc.Up)
		if err := c.Drain(t.Context(), "a", "", 0); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		wantState(t, c, "a", hc.Draining)
		if err := c.Undrain(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		wantState(t, c, "a", hc.Up)
		synctest.Wait()
		seen.want(t, "a", hc.Up, hc.Draining, hc.Up, hc.Draining, hc.Up)
	})
}

func TestDrainRefuses(t *testing.T) {
	c := build(t, hc.Config{Shards: []string{"a"}, Probe: newServers().probe})
	if err := c.Drain(t.Context(), "x", "", 0); !errors.Is(err, hc.ErrUnknownShard) {
		t.Errorf("unknown shard: %v", err)
	}
	if err := c.Undrain(t.Context(), "x"); !errors.Is(err, hc.ErrUnknownShard) {
		t.Errorf("unknown shard: %v", err)
	}
	if err := c.Drain(t.Context(), "a", "", -1); err == nil {
		t.Error("a negative ttl was taken")
	}
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers()
		c, seen := alone(t, s)
		s.freeze("a")
		var wg sync.WaitGroup
		pass(500 * time.Millisecond)
		c.Suspect("a", "broken pipe")
		wg.Go(func() { c.Settle(context.Background(), "a") })
		wg.Go(func() { c.Check(context.Background(), "a") })
		synctest.Wait()
		began := time.Now()
		for range 3 {
			wg.Go(c.Close)
		}
		wg.Wait()
		if took := time.Since(began); took != 0 {
			t.Errorf("took %v: the running probe was not cancelled", took)
		}
		wantState(t, c, "a", hc.Up) // what a cancelled probe says is no evidence
		seen.want(t, "a", hc.Up, hc.Suspect, hc.Up)
		c.Start()
		c.Suspect("a", "late")
		c.Check(t.Context(), "a")
		c.Settle(t.Context(), "a")
		pass(time.Hour)
		if n := s.count("b"); n != 1 {
			t.Errorf("b was probed %d times, also after Close", n)
		}
	})
}

func TestNeverStarted(t *testing.T) {
	c := build(t, hc.Config{Shards: []string{"a"}, Probe: newServers().probe})
	c.Suspect("a", "early")
	wantState(t, c, "a", hc.Suspect)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if v := c.Check(ctx, "a"); v.State != hc.Suspect {
		t.Errorf("checked as %v", v.State)
	}
	c.Close()
	c.Close()
	c.Start()
	wantState(t, c, "a", hc.Unknown)
}

func TestReadingAllocatesNothing(t *testing.T) {
	c := build(t, hc.Config{Shards: []string{"a"}, Probe: newServers().probe})
	var v hc.View
	if n := testing.AllocsPerRun(100, func() { v = c.View("a") }); n != 0 {
		t.Errorf("View allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { v = c.Snapshot()["a"] }); n != 0 {
		t.Errorf("Snapshot allocates %v times", n)
	}
	_ = v
}

func TestLogSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		s := newServers()
		s.say("a", hc.Misconfigured)
		c := start(t, hc.Config{Shards: []string{"a"}, Probe: s.probe, Instance: "web-1", Logger: slog.New(slog.NewTextHandler(&text, nil))})
		synctest.Wait()
		c.Close()
		for _, want := range []string{"level=WARN", "shard=a", "from=unknown", "to=misconfigured", `reason="told to be misconfigured"`, `evidence="own probe"`, "by=web-1"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("log misses %s: %s", want, text.String())
			}
		}
		if n := strings.Count(text.String(), "\n"); n != 1 {
			t.Errorf("%d lines for one change", n)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	probe := newServers().probe
	tests := []struct {
		cfg    hc.Config
		want   string
		reason string
	}{
		{hc.Config{Probe: probe}, "Shards is empty", "nothing to watch"},
		{hc.Config{Shards: []string{"a"}}, "Probe is nil", "nothing to watch with"},
		{hc.Config{Shards: []string{"a", "a"}, Probe: probe}, "twice", "two probers for one shard"},
		{hc.Config{Shards: []string{"a:b"}, Probe: probe}, "not a shard's name", "a colon separates keys"},
		{hc.Config{Shards: []string{"{a}"}, Probe: probe}, "not a shard's name", "braces choose slots"},
		{hc.Config{Shards: []string{""}, Probe: probe}, "not a shard's name", "empty"},
		{hc.Config{Shards: []string{"a"}, Probe: probe, Interval: -1}, "Interval", "negative"},
		{hc.Config{Shards: []string{"a"}, Probe: probe, Interval: 1}, "Interval", "a nanosecond would be a storm"},
		{hc.Config{Shards: []string{"a"}, Probe: probe, ProbeTimeout: -1}, "ProbeTimeout", "negative"},
		{hc.Config{Shards: []string{"a"}, Probe: probe, ProbeTimeout: 1, SuspicionTimeout: 2}, "at most ProbeTimeout", "the pair does not fit"},
	}
	for _, tt := range tests {
		if _, err := hc.New(tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q: %s", err, tt.want, tt.reason)
		}
	}
}
