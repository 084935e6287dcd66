package shardrouter

import (
	"cmp"
	"hash/fnv"
	"slices"

	"github.com/shardhop/shardhop/healthcache"
)

// candidateInput is all that the order of attempts follows from.
type candidateInput struct {
	ring   []Shard // the configured shards in rotation order; those of other groups are passed over
	route  Route
	picked bool   // route.Shard was only just picked for a new route, and binds nobody yet
	onward bool   // the route's shard was waited for, for as long as one does
	key    string // of the session, for RotationSpread
	health healthcache.Snapshot

	rotation Rotation
	rotateTo RotateTo
	// copies reports that two shards are proved to hold the same rows. Nil:
	// nothing is proved.
	copies func(a, b string) bool
}

// candidates names the shards of the route's group that a request may try, in
// order, and those to fall back on when none of them gave a connection.
//
// The route's own shard comes first, then the others in rotation order. Among
// the others those of WeightNone come last; drained shards, the route's own
// included, come after all the rest, so that a group that is drained whole
// keeps serving. What is known to be out of service costs no attempt: it is
// in the second list, to be probed first, the route's own shard and its home
// before the others.
//
// A shard that is not configured, or is of another group, counts as none: the
// order is then the ring's.
func candidates(in candidateInput) (attempts, outOfService []string) {
	order := in.order()
	attempts = make([]string, 0, len(order))
	for class := classOpen; class < classOut; class++ {
		for i, s := range order {
			own := i == 0 && s.Name == in.route.Shard
			if rotationClass(s, in.health[s.Name], own) == class {
				attempts = append(attempts, s.Name)
			}
		}
	}
	if len(attempts) == len(order) {
		return attempts, nil
	}
	for _, s := range homeSecond(order, in.route) {
		if !usable(in.health[s.Name]) {
			outOfService = append(outOfService, s.Name)
		}
	}
	return attempts, outOfService
}

// assignable returns the shards of a group among which the policy picks for a
// new route: the best class that is not empty, in ring order. It is empty when
// every shard of the group is out of service.
func assignable(ring []Shard, group string, health healthcache.Snapshot) []Shard {
	best := classOut
	var list []Shard
	for _, s := range ring {
		if s.Group != group {
			continue
		}
		class := assignmentClass(s, health[s.Name])
		if class < best {
			best, list = class, list[:0]
		}
		if class == best && class < classOut {
			list = append(list, s)
		}
	}
	return list
}

// class ranks shards: the lower, the sooner one is used.
type class int

const (
	classOpen    class = iota
	classStrange       // up to something: suspect or busy; assignments only
	classClosed        // WeightNone
	classDrained
	classOut // out of service
)

// rotationClass ranks a shard for a route that exists. A route's own shard
// keeps it whatever its weight; suspicion and load are no reason to pass a
// shard over, since the attempt itself waits for the verdict.
func rotationClass(s Shard, v healthcache.View, own bool) class {
	switch {
	case !usable(v):
		return classOut
	case drained(v):
		return classDrained
	case s.Weight == WeightNone && !own:
		return classClosed
	}
	return classOpen
}

// assignmentClass ranks a shard for a new route, which is bound to none and
// may choose.
func assignmentClass(s Shard, v healthcache.View) class {
	c := rotationClass(s, v, false)
	if c == classOpen && (v.State == healthcache.Suspect || v.State == healthcache.Busy) {
		return classStrange
	}
	return c
}

// usable reports whether a shard is worth an attempt as far as is known.
// Nothing known means: try it; load is no reason not to; a drain is an order,
// not a fault.
func usable(v healthcache.View) bool { return isUsable(v.State) }

func isUsable(s healthcache.State) bool {
	switch s {
	case healthcache.Down, healthcache.Misconfigured, healthcache.ReadOnly:
		return false
	}
	return true
}

// drained reports whether an operator wants no work on the shard.
func drained(v healthcache.View) bool {
	return v.Drained || v.State == healthcache.Draining
}

// order returns the shards that the route may use whatever their health: its
// own one first, then the targets of a rotation.
func (in candidateInput) order() []Shard {
	members := make([]Shard, 0, len(in.ring))
	own := -1
	for _, s := range in.ring {
		if s.Group != in.route.Group {
			continue
		}
		if s.Name == in.route.Shard {
			own = len(members)
		}
		members = append(members, s)
	}
	if own < 0 {
		return members
	}
	if !in.picked && members[own].OnFailure.stays(in.onward) {
		return members[own : own+1]
	}
	return in.rotated(members, own)
}

// rotated returns the member own, and after it the others in rotation order.
func (in candidateInput) rotated(members []Shard, own int) []Shard {
	order := slices.Concat(members[own:], members[:own])
	targets := order[1:]
	if in.rotation == RotationSpread && in.key != "" {
		slices.SortStableFunc(targets, func(a, b Shard) int {
			return cmp.Compare(score(in.key, b.Name), score(in.key, a.Name))
		})
	}
	if in.rotateTo != RotateToCopies || in.picked {
		return order
	}
	targets = slices.DeleteFunc(targets, func(s Shard) bool {
		return in.copies == nil || !in.copies(order[0].Name, s.Name)
	})
	return order[:1+len(targets)]
}

// homeSecond returns the order with the route's home right behind its own
// shard: it is the one most likely to hold the player's rows besides.
func homeSecond(order []Shard, rt Route) []Shard {
	first := 0
	if len(order) > 0 && order[0].Name == rt.Shard {
		first = 1
	}
	i := slices.IndexFunc(order, func(s Shard) bool { return s.Name == rt.Home })
	if i <= first {
		return order
	}
	return slices.Concat(order[:first], order[i:i+1], order[first:i], order[i+1:])
}

// score is the rendezvous weight of a shard for a session. It is the same in
// every process, and each session ranks the shards anew, so that the players
// of a dead shard spread over all the others.
func score(key, shard string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(shard))
	return mix(h.Sum64())
}

// mix carries a difference in any bit to all the others, which FNV alone does
// not do for names that differ in their last letter (the finisher of
// MurmurHash3).
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return x
}
