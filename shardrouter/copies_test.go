package shardrouter_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

func TestClusterID(t *testing.T) {
	const uuid = "1c9057b7-ec2e-11f1-9699-be64fe3f6f72"
	tests := []struct{ uuid, name, want, reason string }{
		{uuid, "east", uuid + " east", "a member"},
		{uuid, "", uuid, "a cluster without a name"},
		{"", "east", "", "a server that says nothing of it"},
		{"00000000-0000-0000-0000-000000000000", "east", "", "one that has not joined yet"},
	}
	for _, tt := range tests {
		if got := shardrouter.ClusterID(tt.uuid, tt.name); got != tt.want {
			t.Errorf("%q, %q: %q, want %q: %s", tt.uuid, tt.name, got, tt.want, tt.reason)
		}
	}
}

func primary(addr, cluster string) healthcache.Node {
	return healthcache.Node{Addr: addr, Role: "primary", Cluster: cluster}
}

func silent(addr, cluster string) healthcache.Node {
	return healthcache.Node{Addr: addr, Cluster: cluster}
}

func standby(addr, cluster string) healthcache.Node {
	return healthcache.Node{Addr: addr, Role: "standby", Cluster: cluster}
}

func TestClusterOf(t *testing.T) {
	tests := []struct {
		nodes  []healthcache.Node
		want   string
		reason string
	}{
		{nil, "", "nobody was heard of"},
		{[]healthcache.Node{primary("a", "u")}, "u", "the usual"},
		{[]healthcache.Node{primary("a", "")}, "", "a server of no cluster"},
		{[]healthcache.Node{silent("a", "u")}, "u", "a dead one is what it was"},
		{[]healthcache.Node{silent("a", "")}, "", "a dead one that was never heard"},
		{[]healthcache.Node{silent("a", "v"), primary("b", "u")}, "u", "the one that takes writes decides"},
		{[]healthcache.Node{standby("a", "u"), primary("b", "")}, "", "a writer of no cluster, whatever its standby is"},
		{[]healthcache.Node{primary("a", "u"), primary("b", "v")}, "", "two writers that disagree"},
		{[]healthcache.Node{standby("a", ""), silent("b", "u")}, "", "no writer, and the rest disagree"},
		{[]healthcache.Node{standby("a", "u"), silent("b", "u")}, "u", "no writer, and all agree"},
	}
	for _, tt := range tests {
		if got := shardrouter.ClusterOf(tt.nodes); got != tt.want {
			t.Errorf("%v: %q, want %q: %s", tt.nodes, got, tt.want, tt.reason)
		}
	}
}

// Each step tells or asks; want is what is known of node a after it.
func TestClustersAreRememberedWhileNodesAreSilent(t *testing.T) {
	steps := []struct {
		said   healthcache.Node
		want   string
		reason string
	}{
		{silent("a", ""), "", "never heard"},
		{primary("b", "u"), "", "another node's word"},
		{silent("a", "u"), "u", "another instance remembers it"},
		{primary("a", "v"), "v", "it says so itself"},
		{silent("a", ""), "v", "it died"},
		{standby("a", "w"), "w", "it came back in another cluster"},
		{primary("a", ""), "", "it left its cluster"},
		{silent("a", ""), "", "and died"},
	}
	var c shardrouter.Clusters
	for _, tt := range steps {
		c.Learn(tt.said)
		if got := c.Recall(silent("a", ""))[0].Cluster; got != tt.want {
			t.Errorf("after %+v: %q, want %q: %s", tt.said, got, tt.want, tt.reason)
		}
	}
	known := []healthcache.Node{primary("a", ""), silent("b", "")}
	if got := c.Recall(known...); got[0] != known[0] || got[1].Cluster != "u" || known[1].Cluster != "" {
		t.Errorf("recall of %v gave %v: want b's cluster in a copy, and what a says now", known, got)
	}
}

// members makes shards server_1..n of servers.
func members(servers ...*lab.MariaDBServer) []shardrouter.Shard {
	shards := make([]shardrouter.Shard, len(servers))
	for i, s := range servers {
		shards[i] = shardrouter.Shard{Name: fmt.Sprintf("server_%d", i+1), DSN: shardrouter.DSN(s.DSN())}
	}
	return shards
}

// start makes a router and waits until it knows all its shards.
func start(t *testing.T, cfg shardrouter.Config) *shardrouter.Router {
	t.Helper()
	cfg.Logger, cfg.HealthInterval = quiet(), cmp.Or(cfg.HealthInterval, 100*time.Millisecond)
	router, err := shardrouter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = router.Close() })
	await(t, router, healthcache.Up, router.Shards()...)
	return router
}

func await(t *testing.T, router *shardrouter.Router, state healthcache.State, shards ...string) {
	t.Helper()
	for _, s := range shards {
		lab.Eventually(t, 30*time.Second, s+" is "+string(state), func() bool {
			return router.Health().View(s).State == state
		})
	}
}

// Two members of one cluster are copies. A member of another cluster is not,
// although both were set up from one data folder, and neither is a server of
// none. A dead member stays the copy that it was, also for an instance that
// starts after its death.
func TestCopiesAreProvedByTheirCluster(t *testing.T) {
	cluster := lab.Galera(t, 3) // two of which are a majority
	twin := lab.Galera(t, 1, lab.WithArgs("--wsrep-cluster-name=twin"))
	shards := members(cluster[0], cluster[1], twin[0], server)
	rdb := lab.Redis(t).Client()
	router := start(t, shardrouter.Config{
		Shards: slices.Clone(shards), RotateTo: shardrouter.RotateToCopies, Redis: rdb, Instance: "first",
	})
	check := func(router *shardrouter.Router) {
		t.Helper()
		for pair, want := range map[[2]string]bool{
			{"server_1", "server_1"}: true, {"server_4", "server_4"}: true, // each is its own copy
			{"server_1", "server_2"}: true, {"server_2", "server_1"}: true, // one cluster
			{"server_1", "server_3"}: false, // two clusters of one origin
			{"server_1", "server_4"}: false, // no cluster
			{"server_9", "server_9"}: false, // not configured
			{"server_1", "server_9"}: false,
		} {
			if got := router.Copies(pair[0], pair[1]); got != want {
				t.Errorf("%v are copies: %v, want %v", pair, got, want)
			}
		}
	}
	check(router)
	if s := router.Stats(); !slices.Equal(s[0].Copies, []string{"server_2"}) || len(s[3].Copies) != 0 {
		t.Errorf("Stats name %v as copies of server_1 and %v of server_4, want server_2 and none", s[0].Copies, s[3].Copies)
	}

	cluster[0].Kill()
	await(t, router, healthcache.Down, "server_1")
	check(router)
	l, err := router.Lease(t.Context(), on("server_1"), "")
	if err != nil {
		t.Fatalf("a session on the dead server_1: %v", err)
	}
	if l.Shard() != "server_2" {
		t.Errorf("a session on the dead server_1 was served by %s, want its copy server_2", l.Shard())
	}
	l.Release()

	later, err := shardrouter.New(shardrouter.Config{
		Shards: slices.Clone(shards), Logger: quiet(), HealthInterval: 100 * time.Millisecond, Redis: rdb, Instance: "later",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = later.Close() })
	await(t, later, healthcache.Up, "server_2", "server_3", "server_4")
	await(t, later, healthcache.Down, "server_1")
	check(later)

	twin[0].Stop()
	await(t, router, healthcache.Down, "server_3")
	if l, err := router.Lease(t.Context(), on("server_3"), ""); !isUnavailable(err, shardrouter.ErrUnavailable) {
		t.Errorf("a session on server_3, which has no copy: %v, %v, want ErrUnavailable", l, err)
	}
}
