package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// listed is a configuration of these shards, all on the one server. A name may
// have a group and another DSN behind it: "server_1/east", "server_1//tls=false".
func listed(names ...string) shardrouter.Config {
	c := shardrouter.Config{
		HealthInterval: 50 * time.Millisecond, AcquireTimeout: 2 * time.Second, ProbeTimeout: 2 * time.Second,
		Logger: quiet(),
	}
	for _, name := range names {
		parts := append(strings.Split(name, "/"), "", "")
		dsn := dsnAt(server.Addr())
		if parts[2] != "" {
			sep := "?"
			if strings.Contains(string(dsn), "?") {
				sep = "&"
			}
			dsn += shardrouter.DSN(sep + parts[2])
		}
		c.Shards = append(c.Shards, shardrouter.Shard{Name: parts[0], Group: parts[1], DSN: dsn, MaxConns: 20})
	}
	return c
}

func routed(t *testing.T, names ...string) *shardrouter.Router {
	t.Helper()
	r, err := shardrouter.New(listed(names...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	lab.Eventually(t, 15*time.Second, "every shard is up", func() bool {
		return !slices.ContainsFunc(r.Shards(), func(s string) bool { return r.Health().View(s).State != healthcache.Up })
	})
	return r
}

func TestReloadRefuses(t *testing.T) {
	r := routed(t, "server_1/east", "server_2/west", "server_3/west")
	tests := []struct {
		name, reason string
		cfg          func() shardrouter.Config
		want         []string
	}{
		{"group's last shard", "its players would have nowhere to go", func() shardrouter.Config { return listed("server_2/west", "server_3/west") },
			[]string{"group east would lose its last shard"}},
		{"another shard in its place", "it may hold other rows, and be down", func() shardrouter.Config { return listed("server_4/east", "server_2/west") },
			[]string{"group east would lose its last shard"}},
		{"its group changed", "that leaves the group as well", func() shardrouter.Config { return listed("server_1/west", "server_2/west") },
			[]string{"group east would lose its last shard"}},
		{"several faults", "an operator hears of all at once", func() shardrouter.Config {
			c := listed("server_1/east", "server_1/east", "server_2/west")
			c.Shards[2].DSN = "app:hunter2@tcp(a:1"
			c.Policy = shardrouter.PolicyLeastConns
			return c
		}, []string{"listed twice", "DSN", "SHARD_POLICY"}},
		{"no shard", "it is a mistake", func() shardrouter.Config { return listed() }, []string{"no shard"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := r.Reload(t.Context(), tt.cfg())
			if err == nil {
				t.Fatalf("no error: %s", tt.reason)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %q shows a password", err)
			}
			if got := r.Shards(); !slices.Equal(got, []string{"server_1", "server_2", "server_3"}) {
				t.Errorf("the shards are %v after it", got)
			}
		})
	}
}

// digger leases over and over for a session of one shard, and follows its route.
func digger(ctx context.Context, r *shardrouter.Router, rt shardrouter.Route) error {
	for ctx.Err() == nil {
		l, err := r.Lease(context.WithoutCancel(ctx), rt, "player")
		if err != nil {
			return err
		}
		if _, err := l.Conn().ExecContext(context.WithoutCancel(ctx), "DO 1"); err != nil {
			l.Release()
			return fmt.Errorf("on %s: %w", l.Shard(), err)
		}
		rt.Shard = l.Shard()
		l.Release()
	}
	return nil
}

func TestReloadUnderLoad(t *testing.T) {
	r := routed(t, "server_1", "server_2", "server_3")
	ctx, stop := context.WithCancel(t.Context())
	var players sync.WaitGroup
	var failed atomic.Pointer[error]
	for i := range 6 {
		players.Go(func() {
			if err := digger(ctx, r, on(fmt.Sprintf("server_%d", i%3+1))); err != nil {
				failed.Store(&err)
			}
		})
	}
	steps := [][]string{
		{"server_1", "server_2", "server_3", "server_4"}, // added
		{"server_1", "server_3", "server_4"},             // removed
		{"server_1//loc=UTC", "server_4", "server_3"},    // other connections, another order
		{"server_1", "server_2", "server_3"},             // all of it back
	}
	for i := range 100 {
		if err := r.Reload(t.Context(), listed(steps[i%len(steps)]...)); err != nil {
			t.Fatalf("reload %d: %v", i, err)
		}
		if err := failed.Load(); err != nil {
			t.Fatalf("a player failed after reload %d: %v", i, *err)
		}
	}
	stop()
	players.Wait()
	if err := failed.Load(); err != nil {
		t.Fatalf("a player failed: %v", *err)
	}
	for _, s := range r.Stats() {
		if s.InUse != 0 || s.Waiting != 0 || s.Held != 0 {
			t.Errorf("%s has %d leases out, %d waiting and %d held at the end", s.Shard, s.InUse, s.Waiting, s.Held)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// Whoever stays keeps its connections when others come and go.
func TestReloadLeavesTheOthersAlone(t *testing.T) {
	r := routed(t, "server_1", "server_2")
	l, err := r.Lease(t.Context(), on("server_1"), "")
	if err != nil {
		t.Fatal(err)
	}
	l.Release()
	before := r.OpenServerConns("server_1")
	for _, names := range [][]string{{"server_1", "server_2", "server_3"}, {"server_1", "server_3"}} {
		if err := r.Reload(t.Context(), listed(names...)); err != nil {
			t.Fatal(err)
		}
		if got := r.OpenServerConns("server_1"); got != before || before == 0 {
			t.Errorf("server_1 has %d connections with %v, had %d", got, names, before)
		}
	}
}

func TestRemovedShardFinishesWhatRuns(t *testing.T) {
	r := routed(t, "server_1", "server_2")
	l, err := r.Lease(t.Context(), on("server_1"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	if err := r.Reload(t.Context(), listed("server_2")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Conn().ExecContext(t.Context(), "DO 1"); err != nil {
		t.Errorf("a lease that was out when its shard was removed: %v", err)
	}
	next, err := r.Lease(t.Context(), on("server_1"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer next.Release()
	if next.Shard() != "server_2" || next.Detour() {
		t.Errorf("the next request of its player: %s, detour %v; want server_2 for good, since nobody else knows server_1", next.Shard(), next.Detour())
	}
	if _, err := r.Acquire(t.Context(), "server_1"); !errors.Is(err, shardrouter.ErrUnknownShard) {
		t.Errorf("Acquire gave %v, want ErrUnknownShard", err)
	}
}

func TestAddedShardIsPreparedFirst(t *testing.T) {
	r := routed(t, "server_1")
	cfg := listed("server_1", "server_2")
	broken := errors.New("no tables")
	cfg.Prepare = func(context.Context, string, *sql.Conn) error { return broken }
	if err := r.Reload(t.Context(), cfg); !errors.Is(err, broken) {
		t.Fatalf("got %v, want the error of Prepare", err)
	}
	if got := r.Shards(); len(got) != 1 {
		t.Fatalf("the shards are %v after a Prepare that failed", got)
	}
	var prepared []string
	cfg.Prepare = func(ctx context.Context, shard string, conn *sql.Conn) error {
		prepared = append(prepared, shard)
		if len(r.Shards()) != 1 {
			t.Error("the shard takes players before it is prepared")
		}
		return conn.PingContext(ctx)
	}
	if err := r.Reload(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(prepared, []string{"server_2"}) || len(r.Shards()) != 2 {
		t.Errorf("prepared %v, shards %v", prepared, r.Shards())
	}
}
