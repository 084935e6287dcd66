package shardrouter_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/shardrouter"
)

// ring makes shards from words like "a", "d/west", "b:0" (no weight) and
// "a!hold" (on failure).
func ring(words string) []shardrouter.Shard {
	var shards []shardrouter.Shard
	for word := range strings.FieldsSeq(words) {
		word, failure, _ := strings.Cut(word, "!")
		word, group, _ := strings.Cut(word, "/")
		name, weight, _ := strings.Cut(word, ":")
		s := shardrouter.Shard{Name: name, Group: group, OnFailure: shardrouter.OnFailure(failure)}
		if s.Weight, _ = strconv.Atoi(weight); weight == "0" {
			s.Weight = shardrouter.WeightNone
		}
		shards = append(shards, s)
	}
	return shardrouter.Config{Shards: shards}.WithDefaults().Shards
}

// health makes a snapshot from words like "a:down" and "b:up,drained".
func health(words string) healthcache.Snapshot {
	snapshot := make(healthcache.Snapshot)
	for word := range strings.FieldsSeq(words) {
		name, state, _ := strings.Cut(word, ":")
		state, _, isDrained := strings.Cut(state, ",")
		snapshot[name] = healthcache.View{Status: healthcache.Status{State: healthcache.State(state)}, Drained: isDrained}
	}
	return snapshot
}

func TestCandidates(t *testing.T) {
	const spread = shardrouter.RotationSpread
	twins := func(a, b string) bool { return a+b == "ac" || a+b == "ca" }
	on := func(shard string) shardrouter.Route {
		return shardrouter.Route{Group: "default", Shard: shard, Home: shard}
	}
	movedTo := func(shard, home string) shardrouter.Route {
		return shardrouter.Route{Group: "default", Shard: shard, Home: home}
	}
	tests := []struct {
		reason string
		in     shardrouter.CandidateInput
		health string
		want   string // attempts | out of service
	}{
		{"nothing known: the own shard, then on through the list",
			shardrouter.CandidateInput{Ring: ring("a b c d"), Route: on("b")}, "", "b c d a |"},
		{"the last of the list goes on at its start",
			shardrouter.CandidateInput{Ring: ring("a b c"), Route: on("c")}, "a:up b:up c:up", "c a b |"},
		{"a shard that is down costs no attempt",
			shardrouter.CandidateInput{Ring: ring("a b c"), Route: on("a")}, "a:down", "b c | a"},
		{"one that takes no writes, and one set up wrong, are as good as down",
			shardrouter.CandidateInput{Ring: ring("a b c"), Route: on("a")}, "a:readonly b:misconfigured", "c | a b"},
		{"suspicion does not move a player: the attempt waits for the verdict",
			shardrouter.CandidateInput{Ring: ring("a b c"), Route: on("b")}, "b:suspect c:suspect", "b c a |"},
		{"load does not move a player",
			shardrouter.CandidateInput{Ring: ring("a b"), Route: on("a")}, "a:busy", "a b |"},
		{"never another group, whatever its health",
			shardrouter.CandidateInput{Ring: ring("a c/west b"), Route: on("a")}, "a:down b:down", "| a b"},
		{"a shard that is drained comes after all the others",
			shardrouter.CandidateInput{Ring: ring("a b c"), Route: on("a")}, "a:up,drained", "b c a |"},
		{"the health key may say the drain as well",
			shardrouter.CandidateInput{Ring: ring("a b c"), Route: on("a")}, "a:draining", "b c a |"},
		{"drained whole, the group keeps serving, each on its own",
			shardrouter.CandidateInput{Ring: ring("a b"), Route: on("b")}, "a:up,drained b:up,drained", "b a |"},
		{"drained and down is down",
			shardrouter.CandidateInput{Ring: ring("a b"), Route: on("a")}, "a:down,drained", "b | a"},
		{"no weight: a target only when nothing else is left",
			shardrouter.CandidateInput{Ring: ring("a b:0 c"), Route: on("a")}, "a:down", "c b | a"},
		{"no weight keeps the players that are there",
			shardrouter.CandidateInput{Ring: ring("a b:0 c"), Route: on("b")}, "", "b c a |"},
		{"rather one without weight than a drained one",
			shardrouter.CandidateInput{Ring: ring("a b:0 c"), Route: on("a")}, "a:down c:up,drained", "b c | a"},
		{"all down: the own shard is probed first, then its home",
			shardrouter.CandidateInput{Ring: ring("a b c d"), Route: movedTo("b", "a")}, "a:down b:down c:down d:down", "| b a c d"},
		{"a home outside of the group has no say",
			shardrouter.CandidateInput{Ring: ring("a b w/west"), Route: movedTo("b", "w")}, "a:down b:down", "| b a"},
		{"a shard that is not configured counts as none",
			shardrouter.CandidateInput{Ring: ring("a b c"), Route: movedTo("gone", "c")}, "b:down", "a c | b"},
		{"of one that is gone the home is probed first",
			shardrouter.CandidateInput{Ring: ring("a b c"), Route: movedTo("gone", "c")}, "a:down b:down c:down", "| c a b"},
		{"a shard of another group counts as none",
			shardrouter.CandidateInput{Ring: ring("a b c/west"), Route: on("c")}, "", "a b |"},
		{"a group without shards has no candidates",
			shardrouter.CandidateInput{Ring: ring("a b"), Route: shardrouter.Route{Group: "west", Shard: "a"}}, "", "|"},
		{"on failure hold: nobody but itself",
			shardrouter.CandidateInput{Ring: ring("a!hold b"), Route: on("a")}, "a:down", "| a"},
		{"on failure fail: nobody but itself, drained or not",
			shardrouter.CandidateInput{Ring: ring("a!fail b"), Route: on("a")}, "a:up,drained", "a |"},
		{"on failure binds no player who is only just being assigned",
			shardrouter.CandidateInput{Ring: ring("a!fail b"), Route: on("a"), Picked: true}, "", "a b |"},
		{"another's on failure does not keep it from being a target",
			shardrouter.CandidateInput{Ring: ring("a b!hold"), Route: on("a")}, "a:down", "b | a"},
		{"copies only, and none is proved: nobody else",
			shardrouter.CandidateInput{Ring: ring("a b c"), Route: on("a"), RotateTo: shardrouter.RotateToCopies}, "a:down", "| a"},
		{"copies only: the proved one",
			shardrouter.CandidateInput{Ring: ring("a b c"), Route: on("a"), RotateTo: shardrouter.RotateToCopies, Copies: twins}, "a:down", "c | a"},
		{"a new player may go anywhere, copy or not",
			shardrouter.CandidateInput{Ring: ring("a b c"), Route: on("a"), RotateTo: shardrouter.RotateToCopies, Picked: true}, "", "a b c |"},
		{"spread without a key falls back to the list",
			shardrouter.CandidateInput{Ring: ring("a b c"), Route: on("b"), Rotation: spread}, "", "b c a |"},
		{"spread by one key is the same in every process and version",
			shardrouter.CandidateInput{Ring: ring("a b c d"), Route: on("a"), Rotation: spread, Key: "k1"}, "", "a d b c |"},
		{"spread by another key goes another way",
			shardrouter.CandidateInput{Ring: ring("a b c d"), Route: on("a"), Rotation: spread, Key: "k6"}, "", "a b d c |"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			tt.in.Health = health(tt.health)
			attempts, out := shardrouter.Candidates(tt.in)
			got := strings.TrimSpace(strings.Join(attempts, " ") + " | " + strings.Join(out, " "))
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAssignable(t *testing.T) {
	tests := []struct {
		reason, ring, health, want string
	}{
		{"nothing known: all", "a b c", "", "a b c"},
		{"only those of the group", "a b w/west", "", "a b"},
		{"not the ones out of service", "a b c d", "a:down b:readonly c:misconfigured d:up", "d"},
		{"not the suspected and the full", "a b c", "a:suspect b:busy", "c"},
		{"unless there is no other", "a b c:0", "a:suspect b:busy", "a b"},
		{"not those without weight", "a:0 b", "", "b"},
		{"unless there is no other", "a:0 b", "b:down", "a"},
		{"not the drained", "a b c", "a:up,drained b:draining", "c"},
		{"unless there is no other", "a b c:0", "a:up,drained b:down c:down", "a"},
		{"none when all are out of service", "a b", "a:down b:down", ""},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			var got []string
			for _, s := range shardrouter.Assignable(ring(tt.ring), "default", health(tt.health)) {
				got = append(got, s.Name)
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSpreadLeavesNoNeighbourWithAll(t *testing.T) {
	const sessions = 3000
	in := shardrouter.CandidateInput{
		Ring:     ring("server_1 server_2 server_3 server_4"),
		Route:    shardrouter.Route{Group: "default", Shard: "server_2"},
		Health:   health("server_2:down"),
		Rotation: shardrouter.RotationSpread,
	}
	count := make(map[string]int)
	for i := range sessions {
		in.Key = "session-" + strconv.Itoa(i)
		attempts, _ := shardrouter.Candidates(in)
		count[attempts[0]]++
	}
	for _, name := range []string{"server_1", "server_3", "server_4"} {
		if n := count[name]; n < sessions/3-150 || n > sessions/3+150 {
			t.Errorf("%s takes %d of %d sessions, want about a third: %v", name, n, sessions, count)
		}
	}
}

// anyInput draws shards of two groups in any health, and a route.
func anyInput(t *rapid.T) shardrouter.CandidateInput {
	states := []healthcache.State{healthcache.Unknown, healthcache.Up, healthcache.Suspect, healthcache.Down,
		healthcache.ReadOnly, healthcache.Busy, healthcache.Misconfigured, healthcache.Draining}
	names := []string{"a", "b", "c", "d", "e", "f"}[:rapid.IntRange(1, 6).Draw(t, "shards")]
	in := shardrouter.CandidateInput{Health: make(healthcache.Snapshot)}
	for _, name := range names {
		in.Ring = append(in.Ring, shardrouter.Shard{
			Name:      name,
			Group:     rapid.SampledFrom([]string{"east", "west"}).Draw(t, "group"),
			Weight:    rapid.SampledFrom([]int{shardrouter.WeightNone, 1, 3}).Draw(t, "weight"),
			OnFailure: rapid.SampledFrom([]shardrouter.OnFailure{shardrouter.OnFailureRotate, shardrouter.OnFailureHold, shardrouter.OnFailureFail}).Draw(t, "on failure"),
		})
		in.Health[name] = healthcache.View{
			Status:  healthcache.Status{State: rapid.SampledFrom(states).Draw(t, "state")},
			Drained: rapid.Bool().Draw(t, "drained"),
		}
	}
	in.Route = shardrouter.Route{
		Group: rapid.SampledFrom([]string{"east", "west", "nowhere"}).Draw(t, "route's group"),
		Shard: rapid.SampledFrom(append(names, "", "gone")).Draw(t, "route's shard"),
		Home:  rapid.SampledFrom(append(names, "", "gone")).Draw(t, "route's home"),
	}
	in.Picked = rapid.Bool().Draw(t, "picked")
	in.Key = rapid.SampledFrom([]string{"", "k1", "k2"}).Draw(t, "key")
	in.Rotation = rapid.SampledFrom([]shardrouter.Rotation{shardrouter.RotationNext, shardrouter.RotationSpread}).Draw(t, "rotation")
	in.RotateTo = rapid.SampledFrom([]shardrouter.RotateTo{shardrouter.RotateToAny, shardrouter.RotateToCopies}).Draw(t, "rotate to")
	return in
}

func TestCandidatesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		before := slices.Clone(in.Ring)
		attempts, out := shardrouter.Candidates(in)

		seen := make(map[string]bool)
		for _, name := range slices.Concat(attempts, out) {
			if seen[name] {
				t.Fatalf("%s comes twice", name)
			}
			seen[name] = true
			if i := slices.IndexFunc(in.Ring, func(s shardrouter.Shard) bool { return s.Name == name }); in.Ring[i].Group != in.Route.Group {
				t.Fatalf("%s is of group %s, the route of %s", name, in.Ring[i].Group, in.Route.Group)
			}
		}
		for _, s := range in.Ring {
			own := s.Name == in.Route.Shard && s.Group == in.Route.Group
			if own && !seen[s.Name] {
				t.Fatal("the route's own shard is in neither list")
			}
			v := in.Health[s.Name]
			if up := v.State == healthcache.Up || v.State == healthcache.Unknown; own && up && !v.Drained && attempts[0] != s.Name {
				t.Fatalf("the route's own shard %s is up, yet %s comes first", s.Name, attempts[0])
			}
		}
		again, outAgain := shardrouter.Candidates(in)
		if !slices.Equal(attempts, again) || !slices.Equal(out, outAgain) {
			t.Fatal("the same question got two answers")
		}
		if !slices.Equal(before, in.Ring) {
			t.Fatal("the ring was changed")
		}
	})
}
