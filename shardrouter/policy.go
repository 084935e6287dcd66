package shardrouter

import (
	"maps"
	"sync"
)

// assigner picks shards for new routes. It is safe for use by several
// goroutines.
//
// It is a smooth weighted round-robin, as nginx does it: in every turn each
// shard present gains credit by its weight, the one with the most is picked
// and pays what all of them gained. A shard that is not present in a turn
// neither gains nor pays, so it comes back with the credit that it left with,
// and never gets the turns that it missed.
type assigner struct {
	policy Policy
	inUse  func(shard string) int // leases out

	mu     sync.Mutex
	credit map[string]int // by shard; its sum over all shards is 0
}

func newAssigner(policy Policy, inUse func(shard string) int) *assigner {
	return &assigner{policy: policy, inUse: inUse, credit: make(map[string]int)}
}

// next picks one of the shards, which are those present in this turn, and
// returns its name; "" when there is none.
func (a *assigner) next(present []Shard) string {
	if a.policy == PolicyLeastConns {
		present = a.leastUsed(present)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var picked string
	total := 0
	for _, s := range present {
		w := a.weight(s)
		total += w
		a.credit[s.Name] += w
		if picked == "" || a.credit[s.Name] > a.credit[picked] {
			picked = s.Name
		}
	}
	if picked != "" {
		a.credit[picked] -= total
	}
	return picked
}

// weight is the share of a shard under the policy. A shard of WeightNone is
// here only when nothing else is left, and then counts as one.
func (a *assigner) weight(s Shard) int {
	if a.policy == PolicyRoundRobin {
		return 1
	}
	return max(1, s.Weight)
}

// leastUsed returns the shards with the fewest leases in use for their weight.
// Equals take turns: on a fleet at rest that is most of the time.
func (a *assigner) leastUsed(present []Shard) []Shard {
	var least []Shard
	var leastUse, leastWeight int
	for _, s := range present {
		use, w := a.inUse(s.Name), a.weight(s)
		// use/w against leastUse/leastWeight, without the division.
		diff := use*leastWeight - leastUse*w
		if len(least) == 0 || diff < 0 {
			least, leastUse, leastWeight = append(least[:0], s), use, w
		} else if diff == 0 {
			least = append(least, s)
		}
	}
	return least
}

// keep forgets the shards that are not in at.
func (a *assigner) keep(at *layout) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.credit, func(shard string, _ int) bool { return at.members[shard] == nil })
}
