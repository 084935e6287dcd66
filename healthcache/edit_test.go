package healthcache_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	hc "github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
)

// TestHandWrittenKeys has an operator write to the fleet's keys with redis-cli,
// which moves no change counter and gives no hint.
func TestHandWrittenKeys(t *testing.T) {
	t.Run("one server", func(t *testing.T) {
		server := lab.Redis(t)
		handWrittenKeys(t, func() redis.UniversalClient { return redis.NewClient(&redis.Options{Addr: server.Addr()}) })
	})
	t.Run("cluster", func(t *testing.T) {
		masters := lab.RedisCluster(t, 3)
		handWrittenKeys(t, func() redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: masters.Addrs()})
		})
	})
}

func handWrittenKeys(t *testing.T, connect func() redis.UniversalClient) {
	client := func() redis.UniversalClient {
		c := connect()
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	one, two, rdb := join(t, client(), "one"), join(t, client(), "two"), client()
	until(t, soon, "both know", func() bool {
		return one.is("a", hc.Up)() && two.is("a", hc.Up)() && one.is("b", hc.Up)() && two.is("b", hc.Up)()
	})
	ours := func() string { return rdb.Get(t.Context(), "db:health:a").Val() }
	written := func() bool { return strings.HasPrefix(ours(), `{"state":"up"`) && !strings.Contains(ours(), "liar") }
	for _, edit := range []struct {
		reason string
		do     func() error
	}{
		{"a key that is deleted", func() error { return rdb.Del(t.Context(), "db:health:a").Err() }},
		{"garbage", func() error { return rdb.Set(t.Context(), "db:health:a", "garbage", 0).Err() }},
		{"another state", func() error {
			return rdb.Set(t.Context(), "db:health:a", strings.Replace(ours(), `"state":"up"`, `"state":"down"`, 1), time.Minute).Err()
		}},
		{"other details", func() error {
			return rdb.Set(t.Context(), "db:health:a", strings.Replace(ours(), `"by":"`, `"by":"liar `, 1), time.Minute).Err()
		}},
	} {
		if err := edit.do(); err != nil {
			t.Fatal(err)
		}
		until(t, 5*tick, edit.reason+" lasts until the prober's next beat", written) // an interval, and slack
	}
	put(t, rdb, "db:drain:a", "new disks", 0)
	until(t, 5*tick, "both obey", drained("a", one, two))
	put(t, rdb, "db:drain:a", "newer disks", 0)
	until(t, soon, "another reason is noticed at the look at all keys, if not sooner", func() bool {
		return one.View("a").DrainReason == "newer disks" && two.View("a").DrainReason == "newer disks"
	})
	rdb.Del(t.Context(), "db:drain:a")
	until(t, 5*tick, "both know that it ended", undrained("a", one, two))
	put(t, rdb, hc.LeaseKey("b"), "somebody/ELSE", time.Minute)
	until(t, soon, "a lease that nobody alive holds leaves no shard unwatched", func() bool {
		before := one.count("b") + two.count("b")
		until(t, soon, "probes", func() bool { return one.count("b")+two.count("b") >= before+2 })
		return one.is("b", hc.Up)() && two.is("b", hc.Up)()
	})
}
