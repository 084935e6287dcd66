package healthcache_test

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	hc "github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
)

// loss has Redis lose everything right before it is asked for the keys of shard a,
// once for each time that it is armed.
type loss struct {
	armed atomic.Bool
	flush func()
}

// lossyConn is a connection to Redis of an instance with a loss.
type lossyConn struct {
	net.Conn
	loss *loss
}

func (c lossyConn) Write(b []byte) (int, error) {
	reads := bytes.Contains(b, []byte("\r\ndb:health:a\r\n")) && bytes.Contains(b, []byte("\r\ndb:drain:a\r\n"))
	if reads && c.loss.armed.CompareAndSwap(true, false) {
		c.loss.flush()
	}
	return c.Conn.Write(b)
}

// Redis loses everything after a beat and before the reading that the beat gave
// reason for: the drain that is missing there was not deleted.
func TestFlushBetweenBeatAndReading(t *testing.T) {
	server := lab.Redis(t)
	rdb := server.Client()
	l := &loss{flush: func() { rdb.FlushAll(context.Background()) }}
	lossy := redis.NewClient(&redis.Options{
		Addr: server.Addr(),
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return lossyConn{conn, l}, err
		},
	})
	t.Cleanup(func() { _ = lossy.Close() })
	one := join(t, lossy, "one")
	until(t, soon, "up", one.is("a", hc.Up))
	put(t, rdb, "db:drain:a", "new disks", 0)
	until(t, soon, "obeyed", drained("a", one))

	l.armed.Store(true)
	rdb.Publish(t.Context(), "db:changes", "a")
	until(t, soon, "everything is lost", func() bool { return !l.armed.Load() })
	until(t, soon, "the drain is written again", func() bool { return rdb.Get(t.Context(), "db:drain:a").Val() == "new disks" })
	one.neverUndrained(t, "a")
}
