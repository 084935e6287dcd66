package healthcache_test

import (
	"testing"
	"testing/synctest"
	"time"

	hc "github.com/shardhop/shardhop/healthcache"
)

func TestPenalty(t *testing.T) {
	tests := []struct {
		falls  int
		jitter float64
		want   time.Duration
		reason string
	}{
		{0, 0.5, 0, "never fell"},
		{1, 0.5, 0, "the first fall costs nothing but two good probes"},
		{2, 0.5, 2 * time.Second, "the second is a pattern"},
		{3, 0.5, 4 * time.Second, "twice as long"},
		{6, 0.5, 32 * time.Second, "and so on"},
		{7, 0.5, time.Minute, "up to a minute"},
		{1 << 20, 0.5, time.Minute, "for ever"},
		{3, 0, 3200 * time.Millisecond, "a fifth less"},
		{3, 1, 4800 * time.Millisecond, "or more"},
	}
	for _, tt := range tests {
		if got := hc.Penalty(time.Second, tt.jitter, tt.falls); got.Round(time.Millisecond) != tt.want {
			t.Errorf("penalty(%d) = %v, want %v: %s", tt.falls, got, tt.want, tt.reason)
		}
	}
}

// TestAFlappingShardSettlesDown has a shard live and die in turns for five
// minutes, each time just long enough to look recovered.
func TestAFlappingShardSettlesDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers()
		c, seen := alone(t, s)
		for range 60 {
			s.say("a", hc.Down)
			pass(2 * time.Second)
			s.say("a", hc.Up)
			pass(3 * time.Second)
		}
		states, _ := seen.states("a")
		downs := 0
		for _, state := range states {
			if state == hc.Down {
				downs++
			}
		}
		if downs < 2 || downs > 8 {
			t.Errorf("down %d times in five minutes, want a handful", downs)
		}
		if v := c.View("a"); v.Falls < downs {
			t.Errorf("%d falls are held against it after %d", v.Falls, downs)
		}
		pass(90 * time.Second)
		wantState(t, c, "a", hc.Up)
		pass(time.Hour)
		s.say("a", hc.Down)
		pass(2 * time.Second)
		s.say("a", hc.Up)
		pass(3 * time.Second)
		wantState(t, c, "a", hc.Up) // an hour makes up for everything
	})
}

func TestTheLastOneStandingIsNotDamped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers()
		c, _ := alone(t, s)
		for range 20 {
			s.say("a", hc.Down)
			pass(2 * time.Second)
			s.say("a", hc.Up)
			pass(3 * time.Second)
		}
		wantState(t, c, "a", hc.Down)
		if v := c.Check(t.Context(), "a"); v.State != hc.Up {
			t.Errorf("checked as %v", v.State)
		}
	})
}

// TestASuspicionEndsAtOnce: what holds back a shard that fell often must not
// hold up the verdict on one that serves. A round of probes goes on for as long
// as the shard is suspect.
func TestASuspicionEndsAtOnce(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h := hc.Damped(hc.NewHistory(hc.Down, now, 1), time.Second)
	for range 4 {
		h = hc.Transition(hc.Transition(h, hc.Checked, hc.Up, now), hc.Suspected, hc.Down, now)
	}
	if h = hc.Transition(h, hc.Checked, hc.Up, now); h.State() != hc.Up {
		t.Fatalf("checked as %v", h.State())
	}
	if h = hc.Transition(h, hc.Scheduled, hc.Down, now); h.State() != hc.Suspect {
		t.Fatalf("one failed probe made %v", h.State())
	}
	if h = hc.Transition(h, hc.Scheduled, hc.Up, now); h.State() != hc.Up {
		t.Errorf("the confirming probe was good, and %v", h.State())
	}
}
