package healthcache

import (
	"maps"
	"sync/atomic"
)

// names is a set of shard names that is replaced as a whole and read without a
// lock. The zero value is empty.
type names struct {
	set atomic.Pointer[map[string]struct{}]
}

func (n *names) has(name string) bool {
	set := n.set.Load()
	if set == nil {
		return false
	}
	_, ok := (*set)[name]
	return ok
}

// learn takes in the health keys of shards not watched here: those that hold a
// record live. It is called under the board's lock.
func (n *names) learn(read map[string]cell, clock clock) {
	if len(read) == 0 {
		return
	}
	next := map[string]struct{}{}
	if set := n.set.Load(); set != nil {
		next = maps.Clone(*set)
	}
	for name, health := range read {
		if health.failed {
			continue
		}
		delete(next, name)
		if _, err := decodeStatus(health.value, clock); err == nil {
			next[name] = struct{}{}
		}
	}
	n.set.Store(&next)
}
