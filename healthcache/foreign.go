package healthcache

import "sync/atomic"

// names is a set of shard names that is replaced as a whole and read without a
// lock. The zero value is empty.
type names struct{ set atomic.Pointer[map[string]struct{}] }

func (n *names) has(name string) bool {
	set := n.set.Load()
	if set == nil {
		return false
	}
	_, ok := (*set)[name]
	return ok
}
