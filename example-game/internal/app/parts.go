package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shardhop/shardhop/example-game/internal/embedded"
)

// parts is what the program brings itself; nil for what the environment names.
type parts struct {
	cluster *embedded.Cluster
	redis   *embedded.Redis
}

// startParts starts what vars does not name, and returns vars with the
// addresses of it.
func startParts(vars map[string]string) (p parts, full map[string]string, err error) {
	if err := checkOrphans(vars); err != nil {
		return parts{}, nil, err
	}
	full = maps.Clone(vars)
	if full["REDIS_URL"] == "" {
		if p.redis, err = embedded.NewRedis(); err != nil {
			return parts{}, nil, err
		}
		full["REDIS_URL"] = p.redis.URL()
	}
	if full["SHARDS"] == "" {
		if p.cluster, err = embedded.NewCluster(embedded.Config{}); err != nil {
			p.close()
			return parts{}, nil, err
		}
		names := p.cluster.Nodes()
		full["SHARDS"] = strings.Join(names, ",")
		for _, name := range names {
			full[dsnOf(name)] = p.cluster.DSN(name)
		}
	}
	return p, full, nil
}

func dsnOf(shard string) string { return "SHARD_" + strings.ToUpper(shard) + "_DSN" }

// checkOrphans finds variables of a real server whose leading variable was
// forgotten: the embedded part would take its place without a word.
func checkOrphans(vars map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		switch {
		case vars["SHARDS"] == "" && strings.HasPrefix(name, "SHARD_") && strings.HasSuffix(name, "_DSN"):
			return fmt.Errorf("%s: is set, but SHARDS is not: list the names of the shards there, such as server_1,server_2", name)
		case vars["REDIS_URL"] == "" && (name == "REDIS_MODE" || name == "REDIS_SENTINEL_MASTER"):
			return fmt.Errorf("%s: is set, but REDIS_URL is not: want a URL such as redis://127.0.0.1:6379", name)
		}
	}
	return nil
}

// describe tells what is embedded, for the start line.
func (p parts) describe() string {
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
