package healthcache_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	hc "github.com/shardhop/shardhop/healthcache"
)

// servers stands in for the shards: it answers probes as it is told, and
// counts them.
type servers struct {
	mu      sync.Mutex
	says    map[string]hc.State
	frozen  map[string]bool
	probes  map[string]int
	running map[string]int
	piled   bool // two probes ran at once on one shard
}

func newServers() *servers {
	return &servers{says: map[string]hc.State{}, frozen: map[string]bool{}, probes: map[string]int{}, running: map[string]int{}}
}

// say makes shard answer s; frozen makes it answer nothing at all.
func (s *servers) say(shard string, state hc.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.says[shard], s.frozen[shard] = state, false
}

func (s *servers) freeze(shard string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen[shard] = true
}

func (s *servers) count(shard string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.probes[shard]
}

func (s *servers) pile() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.piled
}

func (s *servers) probe(ctx context.Context, shard string) hc.Result {
	state, frozen := s.enter(shard)
	defer s.leave(shard)
	if frozen {
		<-ctx.Done()
		return hc.Result{State: hc.Down, Reason: ctx.Err().Error()}
	}
	if state == hc.Up {
		return hc.Result{State: hc.Up}
	}
	return hc.Result{State: state, Reason: "told to be " + state.String()}
}

func (s *servers) enter(shard string) (hc.State, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probes[shard]++
	s.running[shard]++
	s.piled = s.piled || s.running[shard] > 1
	if s.says[shard] == hc.Unknown {
		s.says[shard] = hc.Up
	}
	return s.says[shard], s.frozen[shard]
}

func (s *servers) leave(shard string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[shard]--
}

// changes collects what OnChange is told.
type changes struct {
	mu  sync.Mutex
	all []hc.Change
}

func (c *changes) add(ch hc.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, ch)
}

// states lists the states that shard went through, and whether each was seen
// by the instance itself.
func (c *changes) states(shard string) (states []hc.State, own []bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range c.all {
		if ch.Shard == shard {
			states, own = append(states, ch.Next.State), append(own, ch.Own)
		}
	}
	return states, own
}

func (c *changes) want(t *testing.T, shard string, want ...hc.State) {
	t.Helper()
	if got, _ := c.states(shard); !slices.Equal(got, want) {
		t.Errorf("%s went through %v, want %v", shard, got, want)
	}
}

// start builds and starts a cache; the test closes it.
func start(t *testing.T, cfg hc.Config) *hc.Cache {
	t.Helper()
	c := build(t, cfg)
	c.Start()
	return c
}

func build(t *testing.T, cfg hc.Config) *hc.Cache {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := hc.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// until polls for what must come true within the time given.
func until(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
		<-tick.C
	}
}
