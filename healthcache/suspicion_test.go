package healthcache_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	hc "github.com/shardhop/shardhop/healthcache"
)

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

// TestCheckIsNotJudgedByAnOlderProbe: a probe that began while the shard was
// frozen says nothing about the shard that answers now.
func TestCheckIsNotJudgedByAnOlderProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var frozen atomic.Bool
		began := make(chan struct{}, 100)
		c, err := hc.New(hc.Config{
			Shards: []string{"a"}, Logger: slog.New(slog.DiscardHandler),
			Probe: func(ctx context.Context, _ string) hc.Result {
				began <- struct{}{}
				if frozen.Load() {
					<-ctx.Done()
					return hc.Result{State: hc.Down}
				}
				return hc.Result{State: hc.Up}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		frozen.Store(true)
		c.Start()
		until(t, time.Minute, "it is given up", func() bool { return c.View("a").State == hc.Down })
		for len(began) > 0 {
			<-began
		}
		<-began // and hangs
		frozen.Store(false)
		if v := c.Check(t.Context(), "a"); v.State != hc.Up {
			t.Errorf("the shard answers, and is %q by the word of a probe that began before", v.State)
		}
	})
}
