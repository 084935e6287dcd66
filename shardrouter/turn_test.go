package shardrouter_test

import (
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// Keys by which the instances take turns, and tell what they found, are damaged:
// the turns go on all the same.
func TestTurnsOutliveDamagedKeys(t *testing.T) {
	own := lab.Redis(t)
	for damage, keys := range map[string]func(turn, proof string) []any{
		"a turn for good":       func(turn, _ string) []any { return []any{"SET", turn, "nobody"} },
		"a turn of years":       func(turn, _ string) []any { return []any{"SET", turn, "nobody", "EX", "100000000"} },
		"a turn that is a list": func(turn, _ string) []any { return []any{"RPUSH", turn, "nobody"} },
		"a proof that is a list": func(_, proof string) []any {
			return []any{"RPUSH", proof, "nothing"}
		},
		"a proof of something else": func(_, proof string) []any { return []any{"SET", proof, `{"sets":[[]]}`} },
	} {
		t.Run(damage, func(t *testing.T) {
			rdb := own.Client()
			if err := rdb.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			if err := rdb.Do(t.Context(), keys("db:prove:default", "db:copies:default")...).Err(); err != nil {
				t.Fatal(err)
			}
			r := open(t, shardrouter.Config{
				Copies: shardrouter.CopiesMarker, Redis: rdb, HealthInterval: 100 * time.Millisecond, Logger: quiet(),
				Shards: []shardrouter.Shard{{Name: "server_1", DSN: dsnAt(server.Addr())}, {Name: "server_2", DSN: dsnAt(server.Addr())}},
			})
			await(t, r, healthcache.Up, r.Shards()...)
			lab.Eventually(t, 20*time.Second, "the copies are known", func() bool { return r.Copies("server_1", "server_2") })
		})
	}
}
