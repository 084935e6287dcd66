package shardrouter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// A failed attempt is no sentence: when the probe that it asks for succeeds, the
// request has been served elsewhere, and the session stays.
func TestUnfoundedSuspicionIsADetour(t *testing.T) {
	var f *fleet
	f = newFleet(t, 2, slowProbes, func(c *shardrouter.Config) {
		c.Observer.Attempt = func(shardrouter.Attempt) { f.set(faultproxy.Pass, "server_1") }
	})
	f.set(faultproxy.Refuse, "server_1")
	l := f.lease(t, "server_1")
	defer l.Release()
	if l.Shard() != "server_2" || !l.Detour() {
		t.Errorf("served by %s, detour %v, want a detour to server_2", l.Shard(), l.Detour())
	}
}

func TestDeadShardIsNoDetour(t *testing.T) {
	f := newFleet(t, 2, slowProbes)
	f.set(faultproxy.Refuse, "server_1")
	l := f.lease(t, "server_1")
	defer l.Release()
	if l.Shard() != "server_2" || l.Detour() {
		t.Errorf("served by %s, detour %v, want a rotation to server_2", l.Shard(), l.Detour())
	}
}

// instance makes one of several routers that share what they know.
func instance(t testing.TB, rdb redis.UniversalClient, name string, shards map[string]string, order []string, change ...func(*shardrouter.Config)) *shardrouter.Router {
	t.Helper()
	cfg := shardrouter.Config{Redis: rdb, Instance: name, Logger: quiet(), HealthInterval: 200 * time.Millisecond}
	for _, shard := range order {
		cfg.Shards = append(cfg.Shards, shardrouter.Shard{Name: shard, DSN: dsnAt(shards[shard])})
	}
	for _, c := range change {
		c(&cfg)
	}
	router, err := shardrouter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = router.Close() })
	for _, shard := range order {
		lab.Eventually(t, 15*time.Second, shard+" is up for "+name, func() bool {
			return router.Health().View(shard).State == healthcache.Up
		})
	}
	return router
}

// awaitBeat waits until an instance has exchanged what it knows with Redis.
func awaitBeat(t *testing.T, rdb redis.UniversalClient, name string) {
	t.Helper()
	last := func() (at float64) {
		for _, member := range rdb.ZRangeWithScores(t.Context(), "db:{fleet}:members", 0, -1).Val() {
			if strings.HasPrefix(member.Member.(string), name+"/") {
				at = member.Score
			}
		}
		return at
	}
	before := last()
	lab.Eventually(t, 15*time.Second, name+" hears from Redis", func() bool { return last() > before })
}

// One of three instances has a broken path to a shard. Its players are served
// elsewhere for as long as that lasts, those of the others stay where they are,
// and no session is moved.
func TestOneInstanceCannotReachAShard(t *testing.T) {
	rdb := lab.Redis(t).Client()
	path := faultproxy.New(t, server.Addr())
	direct := map[string]string{"server_1": server.Addr(), "server_2": server.Addr()}
	broken := instance(t, rdb, "broken", map[string]string{"server_1": path.Addr(), "server_2": server.Addr()}, []string{"server_1", "server_2"})
	others := []*shardrouter.Router{
		instance(t, rdb, "second", direct, []string{"server_1", "server_2"}),
		instance(t, rdb, "third", direct, []string{"server_1", "server_2"}),
	}
	awaitBeat(t, rdb, "broken") // after which it knows of the others
	path.SetMode(faultproxy.Cut)
	deadline := time.Now().Add(4 * time.Second)
	for time.Now().Before(deadline) {
		l, err := broken.Lease(t.Context(), on("server_1"), "")
		if err != nil {
			t.Fatal(err)
		}
		if l.Shard() == "server_2" && !l.Detour() {
			t.Fatal("the instance with the broken path would move its players for good")
		}
		l.Release()
		for i, router := range others {
			l, err := router.Lease(t.Context(), on("server_1"), "")
			if err != nil {
				t.Fatal(err)
			}
			if l.Shard() != "server_1" {
				t.Fatalf("instance %d, which reaches server_1, went to %s", i+2, l.Shard())
			}
			l.Release()
		}
	}
	path.SetMode(faultproxy.Pass)
	lab.Eventually(t, 15*time.Second, "the broken path is mended", func() bool {
		l, err := broken.Lease(t.Context(), on("server_1"), "")
		if err != nil {
			return false
		}
		defer l.Release()
		return l.Shard() == "server_1"
	})
}

// An instance that does not know a shard yet, which others do.
func TestShardThatOnlyOthersKnow(t *testing.T) {
	rdb := lab.Redis(t).Client()
	direct := map[string]string{"server_1": server.Addr(), "server_4": server.Addr()}
	instance(t, rdb, "newer", direct, []string{"server_1", "server_4"})
	older := instance(t, rdb, "older", direct, []string{"server_1"})
	lab.Eventually(t, 15*time.Second, "the older one has heard of server_4", func() bool {
		return older.Health().Known("server_4")
	})
	for shard, detour := range map[string]bool{"server_4": true, "server_9": false} {
		l, err := older.Lease(t.Context(), on(shard), "")
		if err != nil {
			t.Fatal(err)
		}
		if l.Detour() != detour {
			t.Errorf("a session on %s: detour %v, want %v", shard, l.Detour(), detour)
		}
		l.Release()
	}
}
