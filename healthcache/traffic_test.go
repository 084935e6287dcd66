package healthcache_test

import (
	"context"
	"net"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	hc "github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
)

// meter counts what one client sends to Redis and gets back, at its connections.
type meter struct{ commands, bytes atomic.Int64 }

func (m *meter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return meteredConn{conn, m}, nil
}

type meteredConn struct {
	net.Conn
	meter *meter
}

func (c meteredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.meter.bytes.Add(int64(n))
	return n, err
}

// commandHead begins every command on the wire.
var commandHead = regexp.MustCompile(`(?:^|\r\n)\*\d+\r\n\$`)

func (c meteredConn) Write(b []byte) (int, error) {
	c.meter.commands.Add(int64(len(commandHead.FindAllIndex(b, -1))))
	n, err := c.Conn.Write(b)
	c.meter.bytes.Add(int64(n))
	return n, err
}

// metered joins two instances to a server, with a meter each.
func metered(t *testing.T, server *lab.RedisServer) (all [2]instance, meters *pair) {
	t.Helper()
	meters = new(pair)
	for i, name := range []string{"one", "two"} {
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), Dialer: meters[i].dial})
		t.Cleanup(func() { _ = rdb.Close() })
		all[i] = join(t, rdb, name)
	}
	return all, meters
}

// pair is the meters of two instances.
type pair [2]meter

// within fails the test if one of them had more bytes of traffic than that.
func (p *pair) within(t *testing.T, limit int64) {
	t.Helper()
	for i := range p {
		if n := p[i].bytes.Load(); n > limit {
			t.Errorf("instance %d had %d bytes of traffic", i, n)
		}
	}
}

// TestQuietTraffic counts what three instances and three shards cost Redis while
// nothing happens, looks at all keys included.
func TestQuietTraffic(t *testing.T) {
	t.Run("one server", func(t *testing.T) {
		server := lab.Redis(t)
		quietTraffic(t, 2.6, 400, func(m *meter) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: server.Addr(), Dialer: m.dial})
		})
	})
	t.Run("cluster", func(t *testing.T) {
		masters := lab.RedisCluster(t, 3)
		quietTraffic(t, 7, 500, func(m *meter) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: masters.Addrs(), Dialer: m.dial})
		})
	})
}

// quietTraffic has three instances share Redis by clients of their own, and holds
// the most commands and bytes of an interval.
func quietTraffic(t *testing.T, mostCommands, mostBytes float64, connect func(*meter) redis.UniversalClient) {
	shards := []string{"server_1", "server_2", "server_3"}
	var meters [3]meter
	var all [3]instance
	var rdb redis.UniversalClient
	for i := range all {
		rdb = connect(&meters[i])
		t.Cleanup(func() { _ = rdb.Close() })
		all[i] = join(t, rdb, "web-1.example.net:1234"+string(rune('a'+i)), func(cfg *hc.Config) { cfg.Shards = shards })
	}
	until(t, 3*soon, "each holds its part of the leases", func() bool {
		holders := map[string]bool{}
		for _, shard := range shards {
			holders[rdb.Get(t.Context(), hc.LeaseKey(shard)).Val()] = true
		}
		return len(holders) == len(all)
	})
	counter := func() string { return rdb.Get(t.Context(), "db:{fleet}:counter").Val() }
	for range 5 {
		<-time.After(5 * tick) // what is new has been told
		before := counter()
		spent := measure(meters[:], 20)
		if counter() != before {
			continue // something happened, on a machine that starved somebody
		}
		for i, s := range spent {
			t.Logf("instance %d: %.2f commands and %.0f bytes per interval", i, s.commands, s.bytes)
			if s.commands < 1 || s.commands > mostCommands || s.bytes > mostBytes {
				t.Errorf("instance %d: %.2f commands and %.0f bytes per interval", i, s.commands, s.bytes)
			}
		}
		return
	}
	t.Error("there was never quiet")
}

// spending is what an instance sends and gets in an interval.
type spending struct{ commands, bytes float64 }

// measure counts for some intervals.
func measure(meters []meter, intervals int) []spending {
	before := make([][2]int64, len(meters))
	for i := range meters {
		before[i] = [2]int64{meters[i].commands.Load(), meters[i].bytes.Load()}
	}
	<-time.After(time.Duration(intervals) * tick)
	spent := make([]spending, len(meters))
	for i := range meters {
		spent[i].commands = float64(meters[i].commands.Load()-before[i][0]) / float64(intervals)
		spent[i].bytes = float64(meters[i].bytes.Load()-before[i][1]) / float64(intervals)
	}
	return spent
}
