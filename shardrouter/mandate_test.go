package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// Without Redis an instance writes on for as long as it sees that the standby
// takes no writes, and no longer.
func TestWritesWithoutRedis(t *testing.T) {
	rdb := lab.Redis(t)
	f := newInstancesBy(t, 1, func() redis.UniversalClient { return rdb.Client() })
	pair, r := f.pair, f.routers[0]
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

// Nobody waits for a word from Redis for longer than the statement, or the
// transaction, was given.
func TestMandateIsNotAwaitedBeyondTheContext(t *testing.T) {
	const term = 3 * time.Second // two of them are waited at most
	rdb := lab.Redis(t)
	f := newInstancesBy(t, 1, func() redis.UniversalClient { return rdb.Client() },
		func(c *shardrouter.Config) { c.HealthInterval = term * 2 / 3 })
	r := f.routers[0]
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	conn := func() *sql.Conn {
		lease, err := r.Lease(t.Context(), on("server_1"), "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(lease.Release)
		return lease.Conn()
	}
	exec, begin, commit := conn(), conn(), conn()
	tx, err := commit.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO writes VALUES (1, @@port)"); err != nil {
		t.Fatal(err)
	}
	f.pair.Node(1).Freeze()
	defer f.pair.Node(1).Thaw()
	rdb.Freeze()
	defer rdb.Thaw()
	lab.Eventually(t, 20*time.Second, "the record is not confirmed any more", func() bool { return !r.Mandated("server_1") })

	began, ended := time.Now(), make(chan error, 3)
	go func() {
		_, err := exec.ExecContext(ctx, "INSERT INTO writes VALUES (2, @@port)")
		ended <- err
	}()
	go func() {
		_, err := begin.BeginTx(ctx, nil)
		ended <- err
	}()
	go func() { ended <- tx.Commit() }()
	time.AfterFunc(term/10, leave)
	for range cap(ended) {
		err := <-ended
		if !errors.Is(err, context.Canceled) && shardrouter.ProgressOf(err) != shardrouter.RolledBack {
			t.Errorf("who has left got %v; want the end of the context, or rolled back", err)
		}
	}
	if took := time.Since(began); took >= term {
		t.Errorf("the last of them ended after %v", took)
	}
	if n := f.count(t, 0); n != 0 {
		t.Errorf("%d rows, want none", n)
	}
}
