package lab

import (
	"context"
	"net"
	"slices"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
)

// slots is how many a cluster has in all.
const slots = 16384

// ClusteredRedis is a Redis Cluster of masters without replicas. Its methods
// are safe for use by several goroutines.
type ClusteredRedis struct {
	t     testing.TB
	nodes []*RedisServer
}

// RedisCluster starts a cluster of masters that share the slots evenly and end
// with t. Redis lets a new cluster take writes after two seconds. Options are
// for every node.
func RedisCluster(t testing.TB, masters int, opts ...Option) *ClusteredRedis {
	t.Helper()
	c := &ClusteredRedis{t: t}
	buses := make([]string, masters)
	for i := range masters {
		// By default the bus is 10,000 above the port, where the kernel's
		// outgoing connections are.
		buses[i] = strconv.Itoa(FreePort(t))
		o := collect(opts)
		o.args = slices.Concat([]string{
			"--cluster-enabled", "yes",
			"--cluster-port", buses[i],
			"--cluster-node-timeout", "2000",
		}, o.args)
		c.nodes = append(c.nodes, newRedisWith(t, o))
	}
	startRedis(c.nodes)
	for i, node := range c.nodes {
		if err := join(t.Context(), node, i, masters, c.peerAddrs(), buses); err != nil {
			t.Fatalf("lab: cluster: %v", err)
		}
	}
	Eventually(t, joinTimeout, "every node knows the whole cluster and takes writes", func() bool {
		return !slices.ContainsFunc(c.nodes, func(node *RedisServer) bool { return !sees(t.Context(), node, masters) })
	})
	return c
}

// join gives node i its share of the slots and introduces it to its peers.
func join(ctx context.Context, node *RedisServer, i, masters int, addrs, buses []string) error {
	client := redis.NewClient(&redis.Options{Addr: node.Addr(), ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()
	pipe := client.Pipeline()
	// An epoch of its own spares the nodes the settling of equal ones.
	pipe.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
	pipe.ClusterAddSlotsRange(ctx, slots*i/masters, slots*(i+1)/masters-1)
	for j := range i {
		host, port, err := net.SplitHostPort(addrs[j])
		if err != nil {
			return err
		}
		pipe.Do(ctx, "CLUSTER", "MEET", host, port, buses[j])
	}
	_, err := pipe.Exec(ctx)
	return err
}

// sees reports whether node knows an owner of every slot among so many nodes.
func sees(ctx context.Context, node *RedisServer, masters int) bool {
	client := redis.NewClient(&redis.Options{Addr: node.Addr(), ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()
	info, err := client.ClusterInfo(ctx).Result()
	return err == nil && hasLine(info, "cluster_state:ok") &&
		hasLine(info, "cluster_slots_ok:"+strconv.Itoa(slots)) &&
		hasLine(info, "cluster_size:"+strconv.Itoa(masters))
}

// Addrs returns the host:port of every node.
func (c *ClusteredRedis) Addrs() []string {
	addrs := make([]string, len(c.nodes))
	for i, node := range c.nodes {
		addrs[i] = node.Addr()
	}
	return addrs
}

// peerAddrs returns the host:port under which the nodes know each other.
func (c *ClusteredRedis) peerAddrs() []string {
	addrs := make([]string, len(c.nodes))
	for i, node := range c.nodes {
		addrs[i] = node.peerAddr()
	}
	return addrs
}

// Nodes returns the servers, to kill or to freeze. A node that is started again
// has lost its keys and keeps its slots.
func (c *ClusteredRedis) Nodes() []*RedisServer { return slices.Clone(c.nodes) }

// URL returns the addresses in the form redis://a?addr=b&addr=c, with rediss and
// the TLS ports if there are any.
func (c *ClusteredRedis) URL() string { return listURL(c.nodes) }

// Client returns a new client of the cluster, which is closed when the test
// ends.
func (c *ClusteredRedis) Client() *redis.ClusterClient {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), ContextTimeoutEnabled: true})
	c.t.Cleanup(func() { _ = client.Close() })
	return client
}
