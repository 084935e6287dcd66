package app

import (
	"strings"

	"github.com/shardhop/shardhop/example-game/internal/embedded"
	"github.com/shardhop/shardhop/shardrouter"
)

// parts is what the program brings itself; nil for what the environment names.
type parts struct {
	cluster *embedded.Cluster
	redis   *embedded.Redis
}

// startParts starts what s says is embedded, and puts its addresses into s.
func startParts(s *settings) (p parts, err error) {
	if s.ownRedis {
		if p.redis, err = embedded.NewRedis(); err != nil {
			return p, err
		}
		s.library.RedisURL = p.redis.URL()
	}
	if s.ownShards {
		if p.cluster, err = embedded.NewCluster(embedded.Config{Nodes: ownNodes}); err != nil {
			return p, err
		}
		for i := range s.library.Router.Shards {
			shard := &s.library.Router.Shards[i]
			shard.DSN = shardrouter.DSN(p.cluster.DSN(shard.Name))
		}
	}
	return p, nil
}

// String tells what is embedded, for the start line.
func (p parts) String() string {
	var names []string
	if p.cluster != nil {
		names = append(names, "MySQL ("+strings.Join(p.cluster.Nodes(), ", ")+")")
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
	if p.cluster != nil {
		_ = p.cluster.Close()
	}
	if p.redis != nil {
		_ = p.redis.Close()
	}
}

// lab lets operators break the nodes of a cluster.
type lab struct{ *embedded.Cluster }

// State gives the state of a node as a plain word.
func (l lab) State(shard string) string { return string(l.Cluster.State(shard)) }
