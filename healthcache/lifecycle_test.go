package healthcache_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	hc "github.com/shardhop/shardhop/healthcache"
)

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

func TestAFlappingShardDoesNotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		s, seen := newServers(), &changes{}
		c := start(t, hc.Config{Shards: []string{"a"}, Probe: s.probe, OnChange: seen.add, Logger: slog.New(slog.NewTextHandler(&text, nil))})
		synctest.Wait()
		for i := range 60 {
			s.say("a", []hc.State{hc.Busy, hc.Up}[i%2])
			pass(time.Second)
		}
		pass(time.Minute)
		s.say("a", hc.Busy)
		pass(time.Second)
		c.Close()
		if states, _ := seen.states("a"); len(states) < 60 {
			t.Errorf("the hook was told of %d changes", len(states))
		}
		if n := strings.Count(text.String(), "\n"); n < 10 || n > 20 {
			t.Errorf("%d lines in two minutes", n)
		}
		if !strings.Contains(text.String(), "lines_withheld=") {
			t.Error("nothing tells that lines were withheld")
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
