package shardrouter

import "github.com/shardhop/shardhop/healthcache"

// nodesOf are the addresses of the nodes of the shards that have several.
func nodesOf(pools map[string]*pool) map[string][]string {
	nodes := make(map[string][]string)
	for name, p := range pools {
		if p.succession == nil {
			continue
		}
		for _, n := range p.connector.nodes {
			nodes[name] = append(nodes[name], n.addr)
		}
	}
	return nodes
}

// writerChanged is told of every record that was read or written and names
// another writer than before. While a shard gets other nodes, both of its pools
// go by it.
func (r *Router) writerChanged(shard string, w healthcache.Writer) {
	at, busy := r.layout.Load(), false
	for _, p := range []*pool{at.pool(shard), at.coming[shard]} {
		if p == nil || p.succession == nil {
			continue // it is not configured any more, or has one node
		}
		p.succession.follow()
		busy = busy || w.Epoch == 0 || p.bulkhead.inUse.Load() > 0
	}
	if busy {
		// To record it again; or to learn whether what runs is on a node that is
		// silent.
		r.health.Suspect(shard, "its writer was recorded anew")
	}
}
