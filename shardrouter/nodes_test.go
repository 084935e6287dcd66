package shardrouter_test

import (
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// A shard of several nodes is served by the first that takes writes.
func TestShardOfSeveralNodes(t *testing.T) {
	standby := lab.MariaDB(t, lab.WithArgs("--read-only=1"))
	primary := faultproxy.New(t, server.Addr())
	dead := faultproxy.New(t, server.Addr())
	dead.SetMode(faultproxy.Refuse)
	silent := faultproxy.New(t, server.Addr())
	silent.SetMode(faultproxy.Silent)

	tests := []struct {
		name, reason string
		first        string
	}{
		{"a standby first", "it answers, and takes no writes", standby.Addr()},
		{"a dead node first", "it refuses", dead.Addr()},
		{"a silent node first", "it may not use up the time of the others", silent.Addr()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			router, err := shardrouter.New(shardrouter.Config{
				HealthInterval: 100 * time.Millisecond,
				Logger:         quiet(),
				Shards:         []shardrouter.Shard{{Name: "server_1", DSN: dsnAt(tt.first + "," + primary.Addr())}},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer router.Close()
			l, err := router.Lease(t.Context(), on("server_1"), "")
			if err != nil {
				t.Fatalf("no lease: %v: %s", err, tt.reason)
			}
			defer l.Release()
			if l.Node() != primary.Addr() {
				t.Errorf("served by node %s, want %s: %s", l.Node(), primary.Addr(), tt.reason)
			}
			lab.Eventually(t, 15*time.Second, "the shard is up, with both nodes listed", func() bool {
				v := router.Health().View("server_1")
				return v.State == healthcache.Up && len(v.Nodes) == 2 && v.Nodes[1].Role == "primary"
			})
		})
	}
}

// A server that turns read-only is no place for a player's writes.
func TestReadOnlyShard(t *testing.T) {
	standby := lab.MariaDB(t, lab.WithArgs("--read-only=1"))
	router, err := shardrouter.New(shardrouter.Config{
		HealthInterval: 100 * time.Millisecond,
		Logger:         quiet(),
		Shards: []shardrouter.Shard{
			{Name: "server_1", DSN: shardrouter.DSN(standby.DSN())},
			{Name: "server_2", DSN: dsnAt(server.Addr())},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer router.Close()
	lab.Eventually(t, 15*time.Second, "the probe has found out", func() bool {
		return router.Health().View("server_1").State == healthcache.ReadOnly
	})
	l, err := router.Lease(t.Context(), on("server_1"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	if l.Shard() != "server_2" {
		t.Errorf("served by %s, which takes no writes", l.Shard())
	}
}
