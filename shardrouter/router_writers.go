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
// another writer than before.
func (r *Router) writerChanged(shard string, w healthcache.Writer) {
	p := r.layout.Load().probed(shard)
	if p == nil || p.succession == nil {
		return // it is not configured any more
	}
	p.succession.follow()
	if w.Epoch == 0 || p.bulkhead.inUse.Load() > 0 {
		// To record it again; or to learn whether what runs is on a node that is
		// silent.
		r.health.Suspect(shard, "its writer was recorded anew")
	}
}
