package app

import (
	"fmt"
	"strings"

	"github.com/shardhop/shardhop/example-game/internal/embedded"
	"github.com/shardhop/shardhop/shardrouter"
)

// parts is what the program brings itself; empty for what the environment
// names.
type parts struct {
	// clusters has one for every group of shards: what is in one group has the
	// same rows, and what is not has not.
	clusters []*embedded.Cluster
	redis    *embedded.Redis
}

// startParts starts what s says is embedded, and puts its addresses into s.
// What it has started when it fails is returned too.
func startParts(s *settings) (p parts, err error) {
	if s.ownRedis {
		if p.redis, err = embedded.NewRedis(); err != nil {
			return p, err
		}
		s.library.RedisURL = p.redis.URL()
	}
	if s.ownShards {
		err = p.startClusters(s.library.Router.Shards)
	}
	return p, err
}

// startClusters starts a cluster for every group, and gives the shards their
// addresses.
func (p *parts) startClusters(shards []shardrouter.Shard) error {
	byGroup := map[string][]*shardrouter.Shard{}
	var groups []string
	for i := range shards {
		group := shards[i].Group
		if byGroup[group] == nil {
			groups = append(groups, group)
		}
		byGroup[group] = append(byGroup[group], &shards[i])
	}
	for _, group := range groups {
		var nodes []string
		for _, shard := range byGroup[group] {
			nodes = append(nodes, shard.Name)
		}
		cluster, err := embedded.NewCluster(embedded.Config{Nodes: nodes})
		if err != nil {
			return err
		}
		p.clusters = append(p.clusters, cluster)
		for _, shard := range byGroup[group] {
			shard.DSN = shardrouter.DSN(cluster.DSN(shard.Name))
		}
	}
	return nil
}

// String tells what is embedded, for the start line.
func (p parts) String() string {
	var names []string
	for _, cluster := range p.clusters {
		names = append(names, "MySQL ("+strings.Join(cluster.Nodes(), ", ")+")")
	}
	if p.redis != nil {
		names = append(names, "Redis")
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, " and ")
}

func (p parts) close() {
	for _, cluster := range p.clusters {
		_ = cluster.Close()
	}
	if p.redis != nil {
		_ = p.redis.Close()
	}
}

// lab lets operators break the nodes of the embedded clusters.
type lab []*embedded.Cluster

// Do runs a verb on the node of a shard.
func (l lab) Do(shard, verb string) error {
	for _, cluster := range l {
		if cluster.State(shard) != "" {
			return cluster.Do(shard, verb)
		}
	}
	return fmt.Errorf("%w: %q", embedded.ErrUnknownNode, shard)
}

// State gives the state of a node as a plain word; empty for an unknown one.
func (l lab) State(shard string) string {
	for _, cluster := range l {
		if state := cluster.State(shard); state != "" {
			return string(state)
		}
	}
	return ""
}
