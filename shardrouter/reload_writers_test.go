package shardrouter_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// A shard of one node gets a standby by a reload, is switched over, and loses its
// old primary by another one, an instance at a time, while both write to it.
func TestReloadOfNodesUnderWriters(t *testing.T) {
	f := &instances{pair: lab.MariaDBPair(t), applied: map[int]bool{}}
	lab.Exec(t, f.pair.Node(0).DSN(), "CREATE TABLE writes (n INT PRIMARY KEY, node VARCHAR(64))")
	rdb := lab.Redis(t).Client()
	for range 2 {
		f.routers = append(f.routers, f.router(t, rdb, f.pair.Node(0).DSN()))
	}
	have := func(dsn string, writer *lab.MariaDBServer) {
		for _, r := range f.routers {
			if err := r.Reload(t.Context(), f.config(nil, dsn)); err != nil {
				t.Fatal(err)
			}
			f.writesTo(t, r, writer.Addr())
			f.writesOn(t, 10)
		}
	}
	f.during(t, func() {
		f.writesOn(t, 10)
		have(f.pair.DSN(), f.pair.Node(0))
		f.pair.Switchover(0, 1, time.Second)
		have(f.pair.Node(1).DSN(), f.pair.Node(1))
		root := lab.Open(t, f.pair.Node(0).RootDSN())
		lab.Eventually(t, 20*time.Second, "nobody is connected to the node that was taken away", func() bool {
			var n int
			row := root.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app'")
			return row.Scan(&n) == nil && n == 0
		})
		f.pair.Node(0).Kill()
		f.writesOn(t, 10)
	})
	if n := f.missing(t, 1); n > 0 || f.count(t, 1) != len(f.applied) {
		t.Errorf("%d of %d acknowledged writes are missing, and there are %d", n, len(f.applied), f.count(t, 1))
	}
}

// writesOn waits until so many more writes were acknowledged.
func (f *instances) writesOn(t *testing.T, more int) {
	t.Helper()
	acknowledged := func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.applied)
	}
	want := acknowledged() + more
	lab.Eventually(t, 20*time.Second, "the writers write on", func() bool { return acknowledged() >= want })
}

// crew is workers who lease from one shard all the time.
type crew struct {
	r       *shardrouter.Router
	busy    atomic.Int64 // leases in their hands
	most    atomic.Int64 // of these at once, since it was last set
	shifts  atomic.Int64 // leases that were given back
	failure atomic.Pointer[error]
}

// work leases until ctx ends, or a lease fails.
func (c *crew) work(ctx context.Context) {
	for ctx.Err() == nil {
		if err := c.shift(context.WithoutCancel(ctx)); err != nil {
			c.failure.Store(&err)
			return
		}
	}
}

func (c *crew) shift(ctx context.Context) error {
	l, err := c.r.Lease(ctx, on("server_1"), "")
	if err != nil {
		return err
	}
	defer l.Release()
	defer c.shifts.Add(1)
	defer c.busy.Add(-1)
	for n := c.busy.Add(1); ; {
		most := c.most.Load()
		if n <= most || c.most.CompareAndSwap(most, n) {
			break
		}
	}
	_, err = l.Conn().ExecContext(ctx, "DO SLEEP(0.003)")
	return err
}

// MaxConns goes up and down under workers of whom there are always more, and
// while leases are out: once those are back that were too many, there are never
// more than it says.
func TestReloadOfMaxConnsUnderLoad(t *testing.T) {
	const workers, enough = 16, 100
	cfg := listed("server_1")
	cfg.MaxWaiting, cfg.Shards[0].MaxConns = workers, 4
	r := open(t, cfg)
	c := &crew{r: r}
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	for range workers {
		working.Go(func() { c.work(ctx) })
	}
	defer working.Wait()
	defer stop()
	for _, conns := range []int{8, 3, 12, 1, 2, 12, 4} {
		cfg.Shards[0].MaxConns = conns
		if err := r.Reload(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		lab.Eventually(t, 20*time.Second, "those are back that are too many", func() bool { return r.Stats()[0].InUse <= conns && r.OpenServerConns("server_1") <= conns })
		c.most.Store(0)
		begun := c.shifts.Load()
		lab.Eventually(t, 20*time.Second, "all of them are in use", func() bool {
			if n := r.OpenServerConns("server_1"); n > conns {
				t.Errorf("%d connections, want at most %d", n, conns)
			}
			return c.failure.Load() != nil || c.shifts.Load()-begun > enough && c.most.Load() >= int64(conns)
		})
		if n := c.most.Load(); n > int64(conns) {
			t.Errorf("%d leases at once, want at most %d", n, conns)
		}
		if err := c.failure.Load(); err != nil {
			t.Fatalf("with %d connections: %v", conns, *err)
		}
	}
}
