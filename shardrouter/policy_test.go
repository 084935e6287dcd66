package shardrouter_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/shardhop/shardhop/shardrouter"
)

func idle(string) int { return 0 }

// take lets the assigner pick n times and returns the picks.
func take(a shardrouter.Assigner, n int, present []shardrouter.Shard) string {
	picks := make([]string, n)
	for i := range picks {
		picks[i] = a.Next(present)
	}
	return strings.Join(picks, "")
}

func TestAssigner(t *testing.T) {
	tests := []struct {
		reason string
		policy shardrouter.Policy
		ring   string
		want   string
	}{
		{"equals take turns", shardrouter.PolicyWeighted, "a b c", "abcabcabc"},
		{"the heavy one is not served in a row", shardrouter.PolicyWeighted, "a:5 b:1 c:1", "aabacaaaabacaa"},
		{"round robin knows no weights", shardrouter.PolicyRoundRobin, "a:5 b:1 c:1", "abcabc"},
		{"least conns at rest takes turns by weight", shardrouter.PolicyLeastConns, "a:2 b:1", "abaaba"},
		{"those without weight share alike when they are all that is left", shardrouter.PolicyWeighted, "a:0 b:0", "abab"},
		{"nothing to pick from", shardrouter.PolicyWeighted, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			a := shardrouter.NewAssigner(tt.policy, idle)
			if got := take(a, max(1, len(tt.want)), ring(tt.ring)); got != tt.want {
				t.Errorf("picks %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAssignerLeastConns(t *testing.T) {
	tests := []struct {
		reason string
		ring   string
		inUse  map[string]int
		want   string
	}{
		{"the emptiest", "a b c", map[string]int{"a": 2, "b": 1, "c": 2}, "b"},
		{"the emptiest for its weight", "a:4 b:1", map[string]int{"a": 7, "b": 2}, "a"},
		{"equals take turns, others wait", "a b c", map[string]int{"a": 1, "b": 0, "c": 0}, "bcbc"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			a := shardrouter.NewAssigner(shardrouter.PolicyLeastConns, func(s string) int { return tt.inUse[s] })
			if got := take(a, len(tt.want), ring(tt.ring)); got != tt.want {
				t.Errorf("picks %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAssignerGivesNoCatchUp(t *testing.T) {
	a := shardrouter.NewAssigner(shardrouter.PolicyWeighted, idle)
	all := ring("a b c")
	take(a, 4, all)
	if n := strings.Count(take(a, 100, all[:2]), "a"); n < 49 || n > 51 {
		t.Errorf("without c, a got %d of 100, want about 50", n)
	}
	got := take(a, 9, all)
	for _, name := range []string{"a", "b", "c"} {
		if n := strings.Count(got, name); n < 2 || n > 4 {
			t.Errorf("picks %q after c came back: %s got %d of 9, want about 3", got, name, n)
		}
	}
	if strings.Contains(got, "cc") {
		t.Errorf("picks %q: c is served in a row", got)
	}
}

// TestAssignerStaysFair lets shards come and go at will: over any stretch, a
// shard gets about its share of the turns in which it was present.
func TestAssignerStaysFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const shards = 4
		all := ring("a b c d")
		weights := 0
		for i := range all {
			all[i].Weight = rapid.IntRange(1, 5).Draw(t, "weight")
			weights += all[i].Weight
		}
		a := shardrouter.NewAssigner(shardrouter.PolicyWeighted, idle)
		due, got := make(map[string]float64), make(map[string]float64)
		for turn := range rapid.IntRange(1, 200).Draw(t, "turns") {
			mask := rapid.IntRange(1, 1<<shards-1).Draw(t, "present in turn "+strconv.Itoa(turn))
			var present []shardrouter.Shard
			sum := 0.0
			for i, s := range all {
				if mask&(1<<i) != 0 {
					present = append(present, s)
					sum += float64(s.Weight)
				}
			}
			for _, s := range present {
				due[s.Name] += float64(s.Weight) / sum
			}
			picked := a.Next(present)
			got[picked]++
			if mask&(1<<(picked[0]-'a')) == 0 {
				t.Fatalf("%s was picked and is not present", picked)
			}
		}
		for name, want := range due {
			if diff := got[name] - want; diff > float64(weights) || diff < -float64(weights) {
				t.Errorf("%s got %v turns, %v were due", name, got[name], want)
			}
		}
	})
}

func TestAssignerCountsEveryPickOnce(t *testing.T) {
	a := shardrouter.NewAssigner(shardrouter.PolicyWeighted, idle)
	present := ring("a b c")
	picks := make(chan string, 90)
	var wg sync.WaitGroup
	for range 9 {
		wg.Go(func() {
			for range 10 {
				picks <- a.Next(present)
			}
		})
	}
	wg.Wait()
	close(picks)
	count := make(map[string]int)
	for p := range picks {
		count[p]++
	}
	for _, name := range []string{"a", "b", "c"} {
		if count[name] != 30 {
			t.Errorf("%d goroutines at once: picks %v, want 30 each", 9, count)
			break
		}
	}
}
