package shardrouter_test

import (
	"context"
	"database/sql"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// states keeps the states that shards went through.
type states struct {
	mu   sync.Mutex
	seen map[string][]healthcache.State
}

func (s *states) watch(c *shardrouter.Config) {
	s.seen = map[string][]healthcache.State{}
	c.Observer.Health = func(ch healthcache.Change) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen[ch.Shard] = append(s.seen[ch.Shard], ch.Next.State)
	}
}

// count is how often a shard came into a state.
func (s *states) count(shard string, state healthcache.State) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seen := range s.seen[shard] {
		if seen == state {
			n++
		}
	}
	return n
}

// rareProbes leaves all that is found out to the requests.
func rareProbes(c *shardrouter.Config) { c.HealthInterval = 30 * time.Second }

// A server that has no connection to spare is full, not dead: its players wait a
// bounded time, are told to come again, and stay its players.
func TestServerOutOfConnections(t *testing.T) {
	const limit = 10
	full := lab.MariaDB(t)
	var seen states
	f := newFleet(t, 2, seen.watch, func(c *shardrouter.Config) {
		c.BusyTimeout = time.Second
		c.Shards[0].DSN = shardrouter.DSN(full.DSN())
	})
	lab.Exec(t, full.RootDSN(), "SET GLOBAL max_connections = 10")
	hog := lab.Open(t, full.DSN())
	var hogged []*sql.Conn
	lab.Eventually(t, 10*time.Second, "the server is full", func() bool {
		conn, err := hog.Conn(t.Context())
		if err != nil {
			return true
		}
		hogged = append(hogged, conn)
		return len(hogged) > limit
	})

	start := time.Now()
	if _, err := f.Lease(t.Context(), on("server_1"), ""); !isUnavailable(err, shardrouter.ErrBusy) {
		t.Fatalf("got %v, want ErrBusy: load is no reason to move", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v, want the second for which a full shard is waited for", took)
	}
	f.wait(t, healthcache.Busy, "server_1")
	for _, conn := range hogged {
		_ = conn.Close()
	}
	_ = hog.Close()
	lab.Eventually(t, 10*time.Second, "it serves again", func() bool {
		l, err := f.Lease(t.Context(), on("server_1"), "")
		if err != nil {
			return false
		}
		defer l.Release()
		return l.Shard() == "server_1"
	})
	if n := seen.count("server_1", healthcache.Down); n != 0 {
		t.Errorf("a full server was called down %d times", n)
	}
}

// A frozen shard takes nothing from the players of another: these are served as
// before, its own are refused or moved within a bounded time, and nothing is
// left behind.
func TestFrozenShardTakesNothingFromAnother(t *testing.T) {
	const own, others = 200, 50
	f := newFleet(t, 2, slowProbes, func(c *shardrouter.Config) { c.Shards[0].MaxConns = 10 })
	var warm []*shardrouter.Lease
	for range 10 {
		warm = append(warm, f.lease(t, "server_1"))
	}
	for _, l := range warm {
		l.Release()
	}
	f.AlwaysPing("server_1")
	before := runtime.NumGoroutine()
	f.set(faultproxy.Freeze, "server_1")

	var refused, moved atomic.Int64
	var wg sync.WaitGroup
	for range own {
		wg.Go(func() {
			start := time.Now()
			l, err := f.Lease(t.Context(), on("server_1"), "")
			switch {
			case err == nil:
				moved.Add(1)
				l.Release()
			case isUnavailable(err, shardrouter.ErrBusy):
				refused.Add(1)
			default:
				t.Errorf("got %v, want a lease elsewhere or ErrBusy", err)
			}
			if took := time.Since(start); took > 8*time.Second {
				t.Errorf("a player of the frozen shard waited %v", took)
			}
		})
	}
	for range others {
		wg.Go(func() {
			for range 20 {
				start := time.Now()
				if got := f.served(t, "server_2"); got != "server_2" {
					t.Errorf("a player of server_2 was served by %s", got)
				}
				if took := time.Since(start); took > 3*time.Second {
					t.Errorf("a player of server_2 waited %v", took)
				}
			}
		})
	}
	wg.Wait()
	if refused.Load() < own-10-40 {
		t.Errorf("%d refused and %d moved of %d, want at most ten leases and forty in line", refused.Load(), moved.Load(), own)
	}
	f.set(faultproxy.Pass, "server_1")
	f.Cut("server_2") // the connections that its players may keep
	lab.Eventually(t, 15*time.Second, "goroutines are back to base", func() bool {
		return runtime.NumGoroutine() <= before
	})
}

// A pool wait in which nothing is answered is a reason to look: nobody waits
// for a frozen shard as if it were a busy one.
func TestWaitForAFrozenShard(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, rareProbes, func(c *shardrouter.Config) {
		c.Shards[0].MaxConns = 1
		c.BusyTimeout = 8 * time.Second
	})
	l := f.lease(t, "server_1") // and its holder is busy with something else
	defer l.Release()
	f.set(faultproxy.Freeze, "server_1")
	if got := f.served(t, "server_1"); got != "server_2" {
		t.Errorf("served by %s, want server_2", got)
	}
	if l.Alive() {
		t.Error("the lease of the frozen shard lives on")
	}
}

// The same wait for a shard that lives is load.
func TestWaitForABusyShard(t *testing.T) {
	t.Parallel()
	var seen states
	f := newFleet(t, 2, rareProbes, seen.watch, func(c *shardrouter.Config) {
		c.Shards[0].MaxConns = 1
		c.BusyTimeout = 2 * time.Second
	})
	l := f.lease(t, "server_1")
	defer l.Release()
	working, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for working.Err() == nil {
			_, _ = l.Conn().ExecContext(working, "SELECT SLEEP(0.05)")
		}
	})
	if _, err := f.Lease(t.Context(), on("server_1"), ""); !isUnavailable(err, shardrouter.ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	stop()
	wg.Wait()
	if n := seen.count("server_1", healthcache.Suspect); n != 0 {
		t.Errorf("suspected %d times while statements finished", n)
	}
}

// A statement that goes without an answer has the shard looked at: once, and
// not by a timer of its own.
func TestSlowStatementIsASuspicion(t *testing.T) {
	t.Parallel()
	var seen states
	f := newFleet(t, 2, rareProbes, seen.watch)
	l := f.lease(t, "server_1")
	if _, err := l.Conn().ExecContext(t.Context(), "SELECT SLEEP(2)"); err != nil {
		t.Fatal(err)
	}
	if n := seen.count("server_1", healthcache.Suspect); n != 1 {
		t.Errorf("suspected %d times for one slow statement, want once", n)
	}
	tx, err := l.Conn().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	think := time.NewTimer(time.Second)
	<-think.C // between two statements
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	l.Release()
	if n := seen.count("server_1", healthcache.Suspect); n != 1 {
		t.Error("a transaction at rest was taken for a slow statement")
	}

	l = f.lease(t, "server_1")
	defer l.Release()
	f.set(faultproxy.Freeze, "server_1")
	start := time.Now()
	if _, err := l.Conn().ExecContext(t.Context(), "SELECT 1"); err == nil {
		t.Error("a frozen server answered")
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v, want half a second and a probe, not the read timeout of 30s", took)
	}
	f.wait(t, healthcache.Down, "server_1")
}
