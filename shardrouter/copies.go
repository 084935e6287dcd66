package shardrouter

import (
	"slices"
	"strings"
	"sync"

	"github.com/shardhop/shardhop/healthcache"
)

// Copies reports whether two configured shards are proved to hold the same
// rows at every moment, up to what a member of a synchronous cluster still has
// to apply. The proof is that the nodes which take writes in both are members
// of one Galera cluster, by its name and by the identity of its rows, or of one
// group of MySQL group replication, by the name of the group. With
// [CopiesMarker] it is also one that each of the two shows at once what the other
// has just written, and that was so in the last interval. A shard
// that is down is taken for what it was when it last answered: what was
// committed there is what its cluster has. A shard that answers and is a member
// of none, and one that nobody has heard of yet, is nobody's copy. A shard is a
// copy of itself.
func (r *Router) Copies(a, b string) bool {
	if r.layout.Load().pool(a) == nil {
		return false
	}
	if a == b {
		return true
	}
	cluster := r.cluster(a)
	return cluster != "" && cluster == r.cluster(b)
}

// copiesOf names the other shards of the group that are copies of shard.
func (r *Router) copiesOf(at *layout, shard Shard) []string {
	copies := []string{}
	for _, s := range at.groups[shard.Group].ring {
		if s.Name != shard.Name && r.Copies(shard.Name, s.Name) {
			copies = append(copies, s.Name)
		}
	}
	return copies
}

// cluster names what a shard holds the rows of: a cluster, or by their markers
// some shards; empty when neither is proved.
func (r *Router) cluster(shard string) string {
	p := r.layout.Load().pool(shard)
	if p == nil {
		return ""
	}
	nodes := r.health.View(shard).Nodes
	if len(nodes) == 0 {
		nodes = p.connector.unheard()
	}
	p.clusters.learn(nodes)
	if name := clusterOf(p.clusters.recall(nodes)); name != "" {
		return name
	}
	return r.prover.rows(p.shard.Load().Group, shard)
}

// noRows is the identity of a Galera member that has not joined a cluster yet.
const noRows = "00000000-0000-0000-0000-000000000000"

// clusterID names a Galera cluster: uuid is the identity of its rows, name the
// cluster's own. The name tells clusters apart that were set up from copies of
// one data folder and share their uuid; members of one cluster cannot differ
// in it.
func clusterID(uuid, name string) string {
	if uuid == "" || uuid == noRows {
		return ""
	}
	return strings.TrimSpace(uuid + " " + name)
}

// clusterOf returns the cluster whose rows a shard of these nodes holds. Those
// that take writes decide, and all of them while none is known to; nodes that
// do not agree prove nothing.
func clusterOf(nodes []healthcache.Node) string {
	deciding := slices.DeleteFunc(slices.Clone(nodes), func(n healthcache.Node) bool { return n.Role != rolePrimary })
	if len(deciding) == 0 {
		deciding = nodes
	}
	if len(deciding) == 0 {
		return ""
	}
	cluster := deciding[0].Cluster
	for _, n := range deciding {
		if n.Cluster != cluster {
			return ""
		}
	}
	return cluster
}

// clusters remembers what the nodes of a shard last said of their cluster, by
// address, for the time when they say nothing any more. The zero value knows
// nothing. It is safe for use by several goroutines.
type clusters struct {
	mu   sync.Mutex // guards said; held for moments by probes and rotations
	said map[string]string
}

// learn takes in what nodes said, or what another instance remembers of them.
// A node that answers and names no cluster has left it.
func (c *clusters) learn(nodes []healthcache.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range nodes {
		if n.Role == "" && n.Cluster == "" {
			continue
		}
		if c.said == nil {
			c.said = make(map[string]string)
		}
		c.said[n.Addr] = n.Cluster
	}
}

// recall returns nodes, those that are silent with the cluster which they last
// named.
func (c *clusters) recall(nodes []healthcache.Node) []healthcache.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	nodes = slices.Clone(nodes)
	for i, n := range nodes {
		if n.Role == "" && n.Cluster == "" {
			nodes[i].Cluster = c.said[n.Addr]
		}
	}
	return nodes
}
