package healthcache_test

import (
	"context"
	"net"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	hc "github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
)

// meter counts what one client sends to Redis and gets back. It hooks into the
// connections, since a client with other timeouts keeps no other hooks.
type meter struct{ commands, bytes atomic.Int64 }

func (m *meter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return meteredConn{conn, m}, nil
	}
}

func (m *meter) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (m *meter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
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

// TestQuietTraffic counts what three instances and three shards cost Redis while
// nothing happens.
func TestQuietTraffic(t *testing.T) {
	server := lab.Redis(t)
	shards := []string{"server_1", "server_2", "server_3"}
	var meters [3]meter
	var all [3]instance
	for i := range all {
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
		t.Cleanup(func() { _ = rdb.Close() })
		rdb.AddHook(&meters[i])
		all[i] = join(t, rdb, "web-1.example.net:1234"+string(rune('a'+i)), func(cfg *hc.Config) { cfg.Shards = shards })
	}
	until(t, soon, "all know", func() bool {
		return !slices.ContainsFunc(all[:], func(in instance) bool { return !in.is("server_1", hc.Up)() || !in.is("server_3", hc.Up)() })
	})
	<-time.After(5 * tick) // what is new has been told
	var commands, bytes [3]int64
	for i := range meters {
		commands[i], bytes[i] = meters[i].commands.Load(), meters[i].bytes.Load()
	}
	const intervals = 20
	<-time.After(intervals * tick)
	for i := range meters {
		perInterval := float64(meters[i].commands.Load()-commands[i]) / intervals
		size := float64(meters[i].bytes.Load()-bytes[i]) / intervals
		t.Logf("instance %d: %.2f commands and %.0f bytes per interval", i, perInterval, size)
		if perInterval < 1 || perInterval > 3 {
			t.Errorf("instance %d: %.2f commands per interval", i, perInterval)
		}
		// The one that probes all shards pays for their leases too.
		if size > 2500 {
			t.Errorf("instance %d: %.0f bytes per interval", i, size)
		}
	}
}
