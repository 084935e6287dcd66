package healthcache_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
)

// writerCache is one instance of a fleet that keeps the record of s1.
func writerCache(t *testing.T, change ...func(*healthcache.Config)) *healthcache.Cache {
	t.Helper()
	cfg := healthcache.Config{
		Shards: []string{"s1"}, Nodes: map[string][]string{"s1": {"a:3306", "b:3306"}}, Interval: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		Probe: func(context.Context, string) healthcache.Result { return healthcache.Result{State: healthcache.Up} },
	}
	for _, c := range change {
		c(&cfg)
	}
	c, err := healthcache.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	t.Cleanup(c.Close)
	return c
}

// Of instances that move a record at the same time one succeeds, and all know
// of it within an interval.
func TestWriterMovesByCompareAndSet(t *testing.T) {
	rdb := lab.Redis(t).Client()
	var caches []*healthcache.Cache
	for range 3 {
		caches = append(caches, writerCache(t, func(c *healthcache.Config) { c.Redis = rdb }))
	}
	for _, c := range caches {
		lab.Eventually(t, 10*time.Second, "the absence of a record is known", func() bool {
			_, fresh := c.Writer("s1")
			return fresh
		})
	}
	var all sync.WaitGroup
	stands := make([]healthcache.Writer, len(caches))
	for i, c := range caches {
		all.Go(func() {
			to := healthcache.Writer{Addr: string(rune('a'+i)) + ":3306", Server: "x", Epoch: 1}
			w, err := c.MoveWriter(t.Context(), "s1", healthcache.Writer{}, to)
			if err != nil {
				t.Error(err)
			}
			stands[i] = w
		})
	}
	all.Wait()
	for i, c := range caches {
		if stands[i].Addr != stands[0].Addr || stands[i].Since.IsZero() {
			t.Errorf("instance %d was told of %+v, the first of %+v", i, stands[i], stands[0])
		}
		lab.Eventually(t, 10*time.Second, "all know the writer", func() bool {
			w, fresh := c.Writer("s1")
			return fresh && w.Addr == stands[0].Addr
		})
	}
	next := healthcache.Writer{Addr: "z:3306", Epoch: 2}
	w, err := caches[0].MoveWriter(t.Context(), "s1", stands[0], next)
	if err != nil || w.Addr != next.Addr {
		t.Fatalf("moved to %+v, %v", w, err)
	}
	if w, err := caches[0].MoveWriter(t.Context(), "s1", w, healthcache.Writer{Addr: "y:3306", Epoch: 3}); !errors.Is(err, healthcache.ErrWriterSettling) {
		t.Errorf("moved to %+v again at once (%v): two instances could move it to and fro", w, err)
	}
}

// A Redis that is full moves no record, so that what it says of one counts. A
// replica may have an old one, and so may a master that its replicas have left, which
// another one may have replaced.
func TestWriterOfARedisThatTakesNoWrites(t *testing.T) {
	rdb := lab.Redis(t).Client()
	c := writerCache(t, func(c *healthcache.Config) { c.Redis = rdb })
	confirmed := func(by string) {
		t.Helper()
		began := time.Now()
		lab.Eventually(t, 10*time.Second, "the record is confirmed by "+by, func() bool { return !c.WriterRead("s1").Before(began) })
	}
	confirmed("a server that takes writes")
	tell := func(command ...any) {
		t.Helper()
		if err := rdb.Do(t.Context(), command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	old := func(what string) {
		t.Helper()
		lab.Eventually(t, 10*time.Second, what+" confirms nothing", func() bool {
			_, fresh := c.Writer("s1")
			return !fresh
		})
	}
	tell("CONFIG", "SET", "maxmemory", 1)
	confirmed("one that is full")
	tell("CONFIG", "SET", "maxmemory", 0, "min-replicas-to-write", 1)
	old("a master without its replicas")
	tell("CONFIG", "SET", "min-replicas-to-write", 0)
	confirmed("one that has enough of them")
	tell("REPLICAOF", "127.0.0.1", lab.FreePort(t))
	old("a replica")
}

// What is no record of a writer says nothing, and can be replaced.
func TestForeignWriterRecord(t *testing.T) {
	for _, value := range []string{"\x00{", `{"addr":"a:3306"}`, `{"epoch":7}`, `{"addr":"b:3306","epoch":18446744073709551615}`} {
		rdb := lab.Redis(t).Client()
		rdb.Set(t.Context(), "db:writer:s1", value, 0)
		c := writerCache(t, func(c *healthcache.Config) { c.Redis = rdb })
		lab.Eventually(t, 10*time.Second, "it was read", func() bool { _, fresh := c.Writer("s1"); return fresh })
		if w, _ := c.Writer("s1"); w.Epoch != 0 {
			t.Errorf("%q was taken for %+v", value, w)
		}
		if w, err := c.MoveWriter(t.Context(), "s1", healthcache.Writer{}, healthcache.Writer{Addr: "a:3306", Epoch: 1}); err != nil || w.Epoch != 1 {
			t.Errorf("%q was not replaced: %+v, %v", value, w, err)
		}
	}
}

// A mark of a move that would never end, or not for a long time, holds no move up
// for longer than a mark of the library's own.
func TestForeignMarkOfMove(t *testing.T) {
	for name, ttl := range map[string]time.Duration{"for ever": 0, "for a day": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			rdb := lab.Redis(t).Client()
			c := writerCache(t, func(c *healthcache.Config) { c.Redis = rdb })
			lab.Eventually(t, 10*time.Second, "it was read", func() bool { _, fresh := c.Writer("s1"); return fresh })
			w, err := c.MoveWriter(t.Context(), "s1", healthcache.Writer{}, healthcache.Writer{Addr: "a:3306", Epoch: 1})
			if err != nil {
				t.Fatal(err)
			}
			rdb.Set(t.Context(), "db:moved:{db:writer:s1}", "by hand", ttl)
			lab.Eventually(t, 10*time.Second, "the writer can be moved", func() bool {
				to, err := c.MoveWriter(t.Context(), "s1", w, healthcache.Writer{Addr: "b:3306", Epoch: 2})
				return err == nil && to.Addr == "b:3306"
			})
		})
	}
}

// Whoever puts megabytes into a record has no instance fetch them, on a single
// server or on a cluster, and the record can be replaced.
func TestOversizedWriterRecord(t *testing.T) {
	for name, rdb := range map[string]redis.UniversalClient{"single": lab.Redis(t).Client(), "cluster": lab.RedisCluster(t, 3).Client()} {
		t.Run(name, func(t *testing.T) {
			rdb.Set(t.Context(), "db:writer:s1", strings.Repeat("x", 8<<20), 0)
			c := writerCache(t, func(c *healthcache.Config) { c.Redis = rdb })
			lab.Eventually(t, 20*time.Second, "it was read", func() bool { _, fresh := c.Writer("s1"); return fresh })
			if n := c.LedgerBytes("db:writer:s1"); n == 0 || n > 32<<10 {
				t.Errorf("%d bytes of it were read", n)
			}
			if w, err := c.MoveWriter(t.Context(), "s1", healthcache.Writer{}, healthcache.Writer{Addr: "a:3306", Epoch: 1}); err != nil || w.Epoch != 1 {
				t.Errorf("it was not replaced: %+v, %v", w, err)
			}
		})
	}
}

// Without Redis a record does not count as fresh for long, and none is moved.
func TestWriterWithoutRedis(t *testing.T) {
	server := lab.Redis(t)
	c := writerCache(t, func(c *healthcache.Config) { c.Redis = server.Client() })
	lab.Eventually(t, 10*time.Second, "it was read", func() bool { _, fresh := c.Writer("s1"); return fresh })
	w, err := c.MoveWriter(t.Context(), "s1", healthcache.Writer{}, healthcache.Writer{Addr: "a:3306", Epoch: 1})
	if err != nil {
		t.Fatal(err)
	}
	server.Freeze()
	lab.Eventually(t, 10*time.Second, "the record is not fresh any more", func() bool {
		_, fresh := c.Writer("s1")
		return !fresh
	})
	if _, err := c.MoveWriter(t.Context(), "s1", w, healthcache.Writer{Addr: "b:3306", Epoch: 2}); err == nil {
		t.Error("moved without Redis")
	}
	if kept, _ := c.Writer("s1"); kept.Addr != "a:3306" {
		t.Errorf("the last known writer is %+v", kept)
	}
	server.Thaw()

	alone := writerCache(t)
	if w, err := alone.MoveWriter(t.Context(), "s1", healthcache.Writer{}, healthcache.Writer{Addr: "a:3306", Epoch: 1}); err != nil || w.Addr != "a:3306" {
		t.Errorf("an instance that stands alone decides by itself, got %+v, %v", w, err)
	}
}

// A node's drain is set by anybody, with redis-cli or by a call, and all know of
// it within an interval.
func TestNodeDrain(t *testing.T) {
	rdb := lab.Redis(t).Client()
	one := writerCache(t, func(c *healthcache.Config) { c.Redis = rdb })
	two := writerCache(t, func(c *healthcache.Config) { c.Redis = rdb })
	both := func(what string, drained bool) {
		t.Helper()
		lab.Eventually(t, 10*time.Second, what, func() bool {
			_, first := one.NodeDrained("s1", "a:3306")
			_, second := two.NodeDrained("s1", "a:3306")
			return first == drained && second == drained
		})
	}
	rdb.Set(t.Context(), "db:drain:s1:a:3306", "new disks", 0)
	both("both know what redis-cli ordered", true)
	if d, _ := one.NodeDrained("s1", "a:3306"); d.Reason != "new disks" || d.Since.IsZero() {
		t.Errorf("the order is %+v", d)
	}
	if _, drained := one.NodeDrained("s1", "b:3306"); drained {
		t.Error("the other node is drained too")
	}
	if err := two.UndrainNode(t.Context(), "s1", "a:3306"); err != nil {
		t.Error(err)
	}
	both("the order is over", false)
	if err := one.DrainNode(t.Context(), "s1", "a:3306", "for a moment", 3*time.Second); err != nil {
		t.Error(err)
	}
	both("both know what one ordered", true)
	both("its time is over", false)
	if err := one.DrainNode(t.Context(), "s1", "z:3306", "x", 0); !errors.Is(err, healthcache.ErrUnknownNode) {
		t.Errorf("an unknown node: %v", err)
	}

	alone := writerCache(t)
	if err := alone.DrainNode(t.Context(), "s1", "a:3306", "x", 50*time.Millisecond); err != nil {
		t.Error(err)
	}
	if _, drained := alone.NodeDrained("s1", "a:3306"); !drained {
		t.Error("an instance that stands alone does not heed its own order")
	}
	lab.Eventually(t, 10*time.Second, "its time is over", func() bool {
		_, drained := alone.NodeDrained("s1", "a:3306")
		return !drained
	})
}
