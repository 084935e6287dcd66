package shardrouter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// Whatever stands in Redis, players of servers that work are served: by their
// own shard when the keys say nothing, and at all when they lie.
func TestHealthKeysLockNobodyOut(t *testing.T) {
	down := fmt.Sprintf(`{"state":"down","checked_at":%q,"since":%[1]q}`, time.Now().UTC().Format(time.RFC3339))
	tests := []struct{ name, value string }{
		{"down", down},
		{"garbage", "\x00{"},
		{"another type", `{"state":17}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rdb := lab.Redis(t).Client()
			for _, shard := range []string{"server_1", "server_2", "server_3"} {
				// Another instance holds the probe's lease, so nobody mends the keys.
				rdb.Set(t.Context(), "db:probe:{db:health:"+shard+"}", "another instance", time.Minute)
				rdb.Set(t.Context(), "db:health:"+shard, tt.value, time.Minute)
			}
			router, err := shardrouter.New(shardrouter.Config{
				Redis:  rdb,
				Logger: quiet(),
				Shards: []shardrouter.Shard{
					{Name: "server_1", DSN: dsnAt(server.Addr())},
					{Name: "server_2", DSN: dsnAt(server.Addr())},
					{Name: "server_3", DSN: dsnAt(server.Addr())},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer router.Close()
			if tt.value == down {
				lab.Eventually(t, 5*time.Second, "the lie has been read", func() bool {
					return router.Health().View("server_3").State == healthcache.Down
				})
			}
			for range 20 {
				l, err := router.Lease(t.Context(), on("server_2"), "")
				if err != nil {
					t.Fatal(err)
				}
				if l.Shard() != "server_2" {
					t.Errorf("a session on server_2 was served by %s", l.Shard())
				}
				l.Release()
			}
		})
	}
}
