package shardrouter_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// Without Redis an instance writes on for as long as it sees that the standby
// takes no writes, and no longer.
func TestWritesWithoutRedis(t *testing.T) {
	pair, rdb := lab.MariaDBPair(t), lab.Redis(t)
	lab.Exec(t, pair.Node(0).DSN(), "CREATE TABLE writes (n INT PRIMARY KEY, node VARCHAR(64))")
	pair.Await(1, 0)
	f := &instances{pair: pair, applied: map[int]bool{}}
	r := f.router(t, rdb.Client(), pair.DSN())
	f.routers = []*shardrouter.Router{r}
	f.writesTo(t, r, pair.Node(0).Addr())
	rdb.Freeze()
	lab.Eventually(t, 20*time.Second, "the record is not confirmed any more", func() bool {
		_, fresh := r.Health().Writer("server_1")
		return !fresh
	})
	if err := f.write(t.Context(), r); err != nil {
		t.Errorf("while the standby is seen: %v", err)
	}
	pair.Node(1).Freeze()
	lab.Eventually(t, 20*time.Second, "nobody is written to", func() bool {
		return r.Health().View("server_1").State == healthcache.ReadOnly
	})
	written := make(chan error, 1)
	go func() { written <- f.write(t.Context(), r) }()
	lab.Eventually(t, 20*time.Second, "the write is held", func() bool { return r.Stats()[0].Held == 1 })
	rdb.Thaw()
	if err := <-written; err != nil {
		t.Errorf("when Redis is back: %v", err)
	}
	pair.Node(1).Thaw()
}

// Nobody waits for a word from Redis for longer than the statement was given.
func TestMandateIsNotAwaitedBeyondTheContext(t *testing.T) {
	pair, rdb := lab.MariaDBPair(t), lab.Redis(t)
	lab.Exec(t, pair.Node(0).DSN(), "CREATE TABLE writes (n INT PRIMARY KEY, node VARCHAR(64))")
	pair.Await(1, 0)
	f := &instances{pair: pair, applied: map[int]bool{}}
	r := f.router(t, rdb.Client(), pair.DSN())
	f.writesTo(t, r, pair.Node(0).Addr())
	lease, err := r.Lease(t.Context(), on("server_1"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	pair.Node(1).Freeze()
	defer pair.Node(1).Thaw()
	rdb.Freeze()
	defer rdb.Thaw()
	lab.Eventually(t, 20*time.Second, "the record is not confirmed any more", func() bool { return !r.Mandated("server_1") })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = lease.Conn().ExecContext(ctx, "INSERT INTO writes VALUES (1, @@port)")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a write that was given 50 ms: %v; want the end of its context", err)
	}
}
