package healthcache_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	hc "github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
)

// The tests of this file run on a real redis-server that is frozen, killed and
// flushed. Clients have default options on purpose: they ignore the deadlines of
// contexts while they wait for an answer.

func client(t *testing.T, server *lab.RedisServer) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// both starts two instances on one server, the first of which probes.
func both(t *testing.T, server *lab.RedisServer) (first, second instance) {
	t.Helper()
	first = join(t, client(t, server), "first")
	until(t, soon, "the first one writes", func() bool {
		return stored(t, server.Client(), "a").By == "first" && stored(t, server.Client(), "b").By == "first"
	})
	second = join(t, client(t, server), "second")
	until(t, soon, "the second one reads", second.is("a", hc.Up))
	return first, second
}

func TestFrozenRedis(t *testing.T) {
	server := lab.Redis(t)
	first, second := both(t, server)
	server.Freeze()

	began := time.Now()
	for range 1000 {
		first.View("a")
		second.Snapshot()
		second.Suspect("a", "broken pipe")
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("3000 calls that never wait took %v", took)
	}
	if v := second.Settle(t.Context(), "a"); v.State != hc.Up {
		t.Errorf("settled as %v", v.State)
	}
	first.say("b", hc.Down)
	second.say("b", hc.Down)
	until(t, soon, "both find out by themselves", func() bool {
		return first.is("b", hc.Down)() && second.is("b", hc.Down)()
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := second.Drain(ctx, "a", "x", 0); err == nil {
		t.Error("a drain that nobody took was no error")
	}

	server.Thaw()
	until(t, soon, "the fleet shares again", func() bool { return stored(t, server.Client(), "b").State == hc.Down })
	if first.pile() || second.pile() {
		t.Error("two probes at once on one shard")
	}
}

func TestCloseOnAFrozenRedis(t *testing.T) {
	server := lab.Redis(t)
	first, second := both(t, server)
	server.Freeze()
	began := time.Now()
	first.Close()
	second.Close()
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestKilledRedisComesBackEmpty(t *testing.T) {
	server := lab.Redis(t)
	first, second := both(t, server)
	server.Kill()
	first.say("a", hc.Down)
	second.say("a", hc.Down)
	until(t, soon, "both find out by themselves", func() bool {
		return first.is("a", hc.Down)() && second.is("a", hc.Down)()
	})
	server.Start()
	until(t, soon, "somebody shares", func() bool { return stored(t, server.Client(), "a").State == hc.Down })
	probes := func() [2]int { return [2]int{first.count("a"), second.count("a")} }
	until(t, soon, "one of them probes again, for both", func() bool {
		before, holder := probes(), stored(t, server.Client(), "a").By
		one, other := 0, 1
		if holder == "second" {
			one, other = 1, 0
		}
		until(t, soon, "the prober's next probes", func() bool { return probes()[one] >= before[one]+3 })
		return probes()[other] == before[other]
	})
}

// TestACutOffProberLosesItsLease: the first instance cannot reach Redis any
// more, neither to extend its leases nor to hand them back, like one that died.
func TestACutOffProberLosesItsLease(t *testing.T) {
	server := lab.Redis(t)
	cut := client(t, server)
	first := join(t, cut, "first")
	until(t, soon, "the first one writes", func() bool { return stored(t, server.Client(), "a").By == "first" })
	second := join(t, client(t, server), "second")
	until(t, soon, "the second one reads", second.is("a", hc.Up))
	_ = cut.Close()
	// Three intervals for the lease, one for the refresh, and slack.
	until(t, 10*tick, "the second one takes over", func() bool { return second.count("a") > 0 })
	until(t, soon, "and writes", func() bool { return stored(t, server.Client(), "a").By == "second" })
	before := first.count("a")
	until(t, soon, "the first one goes on for itself", func() bool { return first.count("a") >= before+2 })
}

func TestFlushedRedis(t *testing.T) {
	server := lab.Redis(t)
	first, second := both(t, server)
	if err := server.Client().FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	until(t, soon, "the record is back", func() bool { return stored(t, server.Client(), "a").State == hc.Up })
	until(t, soon, "both know", func() bool { return first.is("a", hc.Up)() && second.is("a", hc.Up)() })
}

// cluster starts one server that is a whole cluster: it refuses commands and
// scripts over several slots as a larger one does.
func cluster(t *testing.T) *lab.RedisServer {
	t.Helper()
	server := lab.Redis(t, lab.WithArgs("--cluster-enabled", "yes", "--cluster-port", fmt.Sprint(lab.FreePort(t))))
	if err := server.Client().Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	until(t, soon, "the cluster is whole", func() bool {
		return strings.Contains(server.Client().ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	})
	return server
}

func TestCluster(t *testing.T) {
	server := cluster(t)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}})
	t.Cleanup(func() { _ = cluster.Close() })
	first := join(t, cluster, "first")
	until(t, soon, "a record", func() bool { return stored(t, cluster, "a").By == "first" })
	second := join(t, cluster, "second")
	until(t, soon, "the second one reads", second.is("b", hc.Up))
	first.say("b", hc.Down)
	second.say("b", hc.Down)
	until(t, soon, "the second one reads a death", second.is("b", hc.Down))
	if err := cluster.HSet(t.Context(), "db:drain:a", "of", "another type").Err(); err != nil {
		t.Fatal(err)
	}
	before := first.count("a")
	until(t, soon, "three more probes", func() bool { return first.count("a") >= before+3 })
	if v := second.View("a"); v.State != hc.Up || v.Drained {
		t.Errorf("view = %+v", v)
	}
	if err := server.Client().ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	put(t, cluster, "db:drain:b", "new disks", time.Minute)
	until(t, soon, "both see a drain, without a script to begin with", drained("b", first, second))
	first.Close()
	until(t, soon, "the leases are handed over", func() bool { return stored(t, cluster, "a").By == "second" })
}

// TestRedisTakesNoWrites: what can be read is believed, and drains stand.
func TestRedisTakesNoWrites(t *testing.T) {
	server := lab.Redis(t)
	first, second := both(t, server)
	put(t, server.Client(), "db:drain:b", "new disks", 0)
	until(t, soon, "both obey", drained("b", first, second))
	role := func(of ...any) {
		if err := server.Client().Do(t.Context(), append([]any{"REPLICAOF"}, of...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	role("127.0.0.1", lab.FreePort(t))
	put := server.Client().Set(t.Context(), "x", "y", 0).Err()
	if put == nil {
		t.Fatal("the replica takes writes")
	}
	before := second.count("a")
	until(t, soon, "the records ended, own probes serve", func() bool { return second.count("a") >= before+3 })
	for _, in := range []instance{first, second} {
		if v := in.View("b"); !v.Drained {
			t.Error("the drain ended with the writes")
		}
		if v := in.View("a"); v.State != hc.Up {
			t.Errorf("a is %v", v.State)
		}
	}
	role("NO", "ONE")
	until(t, soon, "the fleet shares again", func() bool { return stored(t, server.Client(), "a").State == hc.Up })
}

// A Redis that takes no writes does not confirm the record of a writer. Whether the
// one that is known may still be written to, each instance then has to see for itself,
// however long the word of another on the shard's health stands.
func TestEveryoneLooksAtNodesWithoutAConfirmedWriter(t *testing.T) {
	server := lab.Redis(t)
	pair := func(cfg *hc.Config) {
		cfg.Shards, cfg.Nodes = []string{"a"}, map[string][]string{"a": {"x:3306", "y:3306"}}
	}
	first := join(t, client(t, server), "first", pair)
	until(t, soon, "the first one writes", func() bool { return stored(t, server.Client(), "a").By == "first" })
	second := join(t, client(t, server), "second", pair)
	until(t, soon, "the second one reads", second.is("a", hc.Up))
	_, err := server.Client().TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
		pipe.Persist(t.Context(), "db:health:a")
		return pipe.Do(t.Context(), "REPLICAOF", "127.0.0.1", lab.FreePort(t)).Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	before := second.count("a")
	until(t, soon, "the second one looks", func() bool { return second.count("a") >= before+3 })
	if v := first.View("a"); v.State != hc.Up {
		t.Errorf("a is %v", v.State)
	}
}

// TestDeathIsSharedInTime holds the promise for the default interval: the key
// says down within three seconds after a server stopped listening.
func TestDeathIsSharedInTime(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dial := func(ctx context.Context, _ string) hc.Result {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
		if err != nil {
			return hc.Result{State: hc.Down, Reason: err.Error()}
		}
		_ = conn.Close()
		return hc.Result{State: hc.Up}
	}
	shared := client(t, lab.Redis(t))
	start(t, hc.Config{Shards: []string{"a"}, Probe: dial, Redis: shared})
	until(t, soon, "up", func() bool { return stored(t, shared, "a").State == hc.Up })
	_ = listener.Close()
	until(t, 3*time.Second, "the key says down", func() bool { return stored(t, shared, "a").State == hc.Down })
}

func TestStartOnAFrozenRedis(t *testing.T) {
	server := lab.Redis(t)
	server.Freeze()
	began := time.Now()
	in := join(t, client(t, server), "one")
	until(t, soon, "probes without Redis", in.is("a", hc.Up))
	if took := time.Since(began); took < tick/2 {
		t.Errorf("probed after %v, before Redis had its chance", took)
	}
}
