package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

func TestLeaseStaysOnTheRoutesShard(t *testing.T) {
	f := newFleet(t, 3)
	for _, shard := range f.Shards() {
		if got := f.served(t, shard); got != shard {
			t.Errorf("a session on %s was served by %s with every shard up", shard, got)
		}
	}
}

func TestFirstAssignmentsAreSpread(t *testing.T) {
	f := newFleet(t, 3)
	got := map[string]int{}
	for range 9 {
		got[f.served(t, "")]++
	}
	for _, shard := range f.Shards() {
		if got[shard] != 3 {
			t.Errorf("%s got %d of nine new sessions, want 3: %v", shard, got[shard], got)
		}
	}
}

func TestBadRoutes(t *testing.T) {
	f := newFleet(t, 2, func(c *shardrouter.Config) { c.Shards[1].Group = "west" })
	if _, err := f.Lease(t.Context(), shardrouter.Route{Group: "nowhere"}, ""); !errors.Is(err, shardrouter.ErrUnknownGroup) {
		t.Errorf("unknown group: got %v, want ErrUnknownGroup", err)
	}
	if _, err := f.Acquire(t.Context(), "server_9"); !errors.Is(err, shardrouter.ErrUnknownShard) {
		t.Errorf("unknown shard: got %v, want ErrUnknownShard", err)
	}
	if got := f.served(t, "server_9"); got != "server_1" {
		t.Errorf("a session on a removed shard was served by %q, want another of its group", got)
	}
	if got := f.served(t, "server_2"); got != "server_1" {
		t.Errorf("a session of the default group was served by %q, which is in west", got)
	}
	if n := f.Stats()[0].Reassigned; n != 2 {
		t.Errorf("%d reassignments counted, want 2", n)
	}
}

// The faults under which a request goes on to the next shard.
func TestRotation(t *testing.T) {
	tests := []struct {
		mode   faultproxy.Mode
		warm   bool // an idle connection is in the pool
		reason string
	}{
		{faultproxy.Refuse, false, "the process is gone"},
		{faultproxy.AcceptThenClose, false, "a load balancer without a server behind it"},
		{faultproxy.Silent, false, "the server accepts and never answers"},
		{faultproxy.Freeze, true, "the host is frozen"},
		{faultproxy.Drop, true, "the network swallows packets"},
		{faultproxy.Cut, true, "the network resets connections"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.mode), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 3, slowProbes)
			if tt.warm {
				f.AlwaysPing("server_1")
				f.lease(t, "server_1").Release()
			}
			f.set(tt.mode, "server_1")

			start := time.Now()
			if got := f.served(t, "server_1"); got != "server_2" {
				t.Fatalf("served by %s, want server_2: %s", got, tt.reason)
			}
			if took := time.Since(start); took > 8*time.Second {
				t.Errorf("took %v, want well within the budget of 10s", took)
			}
			f.wait(t, healthcache.Down, "server_1")

			f.failed()
			if got := f.served(t, "server_1"); got != "server_2" {
				t.Fatalf("the second request was served by %s, want server_2", got)
			}
			if a := f.failed(); len(a) != 0 {
				t.Errorf("a shard that is known to be down cost attempts: %v", a)
			}

			f.set(faultproxy.Pass, "server_1")
			f.wait(t, healthcache.Up, "server_1")
			if got := f.served(t, "server_1"); got != "server_1" {
				t.Errorf("after recovery a session on server_1 was served by %s", got)
			}
		})
	}
}

// slowProbes makes periodic probes rare, so that the requests have to find
// faults themselves.
func slowProbes(c *shardrouter.Config) { c.HealthInterval = 2 * time.Second }

func TestTwoOfThreeDead(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, slowProbes)
	f.set(faultproxy.Refuse, "server_1", "server_2")
	if got := f.served(t, "server_1"); got != "server_3" {
		t.Fatalf("served by %s, want server_3", got)
	}
	tries := map[string]int{}
	for _, a := range f.failed() {
		tries[a.Shard]++
	}
	for shard, n := range tries {
		if n > 1 {
			t.Errorf("one request tried %s %d times", shard, n)
		}
	}
}

func TestAllDownAndBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	f.set(faultproxy.Refuse, f.Shards()...)
	start := time.Now()
	_, err := f.Lease(t.Context(), on("server_2"), "")
	if !isUnavailable(err, shardrouter.ErrUnavailable) {
		t.Fatalf("got %v, want an UnavailableError", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v, more than the budget", took)
	}
	f.wait(t, healthcache.Down, f.Shards()...)
	f.set(faultproxy.Pass, f.Shards()...)
	if got := f.served(t, "server_2"); got != "server_2" {
		t.Errorf("the first request after recovery was served by %s, want server_2 by the last resort", got)
	}
}

func TestOnFailureFail(t *testing.T) {
	f := newFleet(t, 2, func(c *shardrouter.Config) { c.Shards[0].OnFailure = shardrouter.OnFailureFail })
	f.set(faultproxy.Refuse, "server_1")
	if _, err := f.Lease(t.Context(), on("server_1"), ""); !isUnavailable(err, shardrouter.ErrUnavailable) {
		t.Fatalf("got %v, want an UnavailableError: the shard's policy is to fail", err)
	}
}

func TestGroupsAreNeverLeft(t *testing.T) {
	f := newFleet(t, 3, func(c *shardrouter.Config) {
		c.Shards[0].Group, c.Shards[1].Group, c.Shards[2].Group = "east", "east", "west"
	})
	f.set(faultproxy.Refuse, "server_1", "server_2")
	rt := shardrouter.Route{Group: "east", Shard: "server_1", Home: "server_1", Epoch: 1}
	l, err := f.Lease(t.Context(), rt, "")
	if err == nil {
		l.Release()
		t.Fatalf("a session of east was served by %s", l.Shard())
	}
	if !isUnavailable(err, shardrouter.ErrUnavailable) {
		t.Fatalf("got %v, want an UnavailableError", err)
	}
}

func TestDrainedShardGivesItsSessionsAway(t *testing.T) {
	f := newFleet(t, 2)
	if err := f.Health().Drain(t.Context(), "server_1", "maintenance", 0); err != nil {
		t.Fatal(err)
	}
	if got := f.served(t, "server_1"); got != "server_2" {
		t.Errorf("a session on a drained shard was served by %s", got)
	}
	if err := f.Health().Drain(t.Context(), "server_2", "all of them", 0); err != nil {
		t.Fatal(err)
	}
	if got := f.served(t, "server_1"); got != "server_1" {
		t.Errorf("with the whole group drained, a session was served by %s, want its own shard", got)
	}
}

func TestCallersEndSaysNothingAboutTheShard(t *testing.T) {
	f := newFleet(t, 2)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			l, err := f.Lease(t.Context(), on("server_1"), "")
			if err != nil {
				t.Errorf("no lease: %v", err)
				return
			}
			defer l.Release()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if _, err := l.Conn().ExecContext(ctx, "SELECT SLEEP(5)"); err == nil {
				t.Error("the query outlived its context")
			}
		})
	}
	wg.Wait()
	if s := f.Health().View("server_1").State; s != healthcache.Up {
		t.Errorf("server_1 is %q after its callers gave up, want up", s)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Lease(gone, on("server_1"), ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the caller's own error", err)
	}
	if a := f.failed(); len(a) != 0 {
		t.Errorf("failed attempts were reported: %v", a)
	}
}

func TestServerClosesIdleConnections(t *testing.T) {
	// What the server has closed is closed here at once, with no proxy between.
	f := newFleet(t, 2, func(c *shardrouter.Config) { c.Shards[0].DSN = dsnAt(server.Addr()) })
	var leases []*shardrouter.Lease
	for range 5 {
		leases = append(leases, f.lease(t, "server_1"))
	}
	root := lab.Open(t, server.RootDSN())
	ids := make([]int, len(leases))
	for i, l := range leases {
		if err := l.Conn().QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&ids[i]); err != nil {
			t.Fatal(err)
		}
		l.Release()
	}
	for _, id := range ids {
		lab.Exec(t, server.RootDSN(), fmt.Sprintf("KILL %d", id))
		lab.Eventually(t, 20*time.Second, "the connection is closed", func() bool {
			var n int
			row := root.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?", id)
			return row.Scan(&n) == nil && n == 0
		})
	}
	for range 5 { // and nobody notices
		if got := f.served(t, "server_1"); got != "server_1" {
			t.Fatalf("served by %s after the server had closed idle connections", got)
		}
	}
	if a := f.failed(); len(a) != 0 {
		t.Errorf("failed attempts: %v", a)
	}
}

func TestFullPool(t *testing.T) {
	t.Parallel()
	var seen states
	f := newFleet(t, 2, seen.watch, func(c *shardrouter.Config) {
		c.Shards[0].MaxConns = 1
		c.BusyTimeout = 200 * time.Millisecond
	})
	l := f.lease(t, "server_1")
	defer l.Release()
	_, err := f.Lease(t.Context(), on("server_1"), "")
	if !isUnavailable(err, shardrouter.ErrBusy) {
		t.Fatalf("got %v, want ErrBusy: load is no reason to move", err)
	}
	// Nothing was answered meanwhile, so somebody looks.
	f.wait(t, healthcache.Up, "server_1")
	if n := seen.count("server_1", healthcache.Down); n != 0 {
		t.Error("a full pool was called down")
	}
}

func TestSecondLeaseOfAFullShardFailsAtOnce(t *testing.T) {
	f := newFleet(t, 1, func(c *shardrouter.Config) { c.Shards[0].MaxConns = 1 })
	ctx := shardrouter.Track(t.Context())
	l, err := f.Lease(ctx, on("server_1"), "")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if _, err := f.Acquire(ctx, "server_1"); !errors.Is(err, shardrouter.ErrNestedLease) {
		t.Errorf("got %v, want ErrNestedLease", err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("took %v, want at once", took)
	}
	l.Release()
	second, err := f.Acquire(ctx, "server_1")
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	second.Release()
}

func TestEach(t *testing.T) {
	f := newFleet(t, 3)
	f.set(faultproxy.Refuse, "server_2")
	f.wait(t, healthcache.Down, "server_2")
	var seen []string
	err := f.Each(t.Context(), func(ctx context.Context, shard string, conn *sql.Conn) error {
		seen = append(seen, shard)
		return conn.PingContext(ctx)
	})
	if !errors.Is(err, shardrouter.ErrUnavailable) {
		t.Errorf("got %v, want the dead shard's error", err)
	}
	if fmt.Sprint(seen) != "[server_1 server_3]" {
		t.Errorf("called for %v, want the two that live, in order", seen)
	}
}

func TestClosedRouter(t *testing.T) {
	f := newFleet(t, 1)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Lease(t.Context(), on("server_1"), ""); !errors.Is(err, shardrouter.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

// A running statement on a frozen server ends when a probe has found out.
func TestFrozenServerEndsRunningLeases(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	l := f.lease(t, "server_1")
	defer l.Release()
	f.set(faultproxy.Freeze, "server_1")
	start := time.Now()
	_, err := l.Conn().ExecContext(t.Context(), "SELECT 1")
	if err == nil {
		t.Fatal("a statement was answered by a frozen server")
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v, want the time of a probe and not the read timeout of 30s", took)
	}
}

func TestMisconfiguredShard(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	router, err := shardrouter.New(shardrouter.Config{
		Logger: quiet(),
		Shards: []shardrouter.Shard{
			{Name: "wrong", DSN: shardrouter.DSN("nobody:wrong@tcp(" + server.Addr() + ")/game")},
			{Name: "right", DSN: dsnAt(f.proxies["server_1"].Addr())},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer router.Close()
	l, err := router.Lease(t.Context(), on("wrong"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	if l.Shard() != "right" {
		t.Errorf("served by %s", l.Shard())
	}
	lab.Eventually(t, 5*time.Second, "the shard is misconfigured", func() bool {
		return router.Health().View("wrong").State == healthcache.Misconfigured
	})
}

// What listens at a shard's address need not be a MySQL server.
func TestForeignServers(t *testing.T) {
	greetings := map[string]string{
		"short greeting":  "\x03\x00\x00\x00\x0aab",
		"short salt":      "\x10\x00\x00\x00\x0a8\x00\x01\x00\x00\x00abcdefgh\x00",
		"another service": "220 mail.example.com ESMTP\r\n",
		"nothing":         "",
	}
	for name, greeting := range greetings {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 1)
			router, err := shardrouter.New(shardrouter.Config{
				Logger: quiet(),
				Shards: []shardrouter.Shard{
					{Name: "foreign", DSN: dsnAt(greeter(t, greeting))},
					{Name: "right", DSN: dsnAt(f.proxies["server_1"].Addr())},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer router.Close()
			l, err := router.Lease(t.Context(), on("foreign"), "")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Release()
			if l.Shard() != "right" {
				t.Errorf("served by %s", l.Shard())
			}
		})
	}
}

// greeter accepts connections, says its greeting and hangs up.
func greeter(t *testing.T, greeting string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, greeting)
			_ = c.Close()
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return l.Addr().String()
}

// However a router is printed, no account shows.
func TestRouterPrintsNoPassword(t *testing.T) {
	f := newFleet(t, 1)
	dsn, err := mysql.ParseDSN(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, f.Router); strings.Contains(text, dsn.Passwd) {
			t.Errorf("%s shows the password", verb)
		}
	}
}

// The last resort asks all shards at once, and a server that has just come back
// is not judged by a probe that began before.
func TestLastResort(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, func(c *shardrouter.Config) { c.ProbeTimeout = time.Second })
	f.set(faultproxy.Silent, f.Shards()...)
	f.wait(t, healthcache.Down, f.Shards()...)
	start := time.Now()
	if _, err := f.Lease(t.Context(), on("server_1"), ""); !isUnavailable(err, shardrouter.ErrUnavailable) {
		t.Errorf("got %v, want an UnavailableError", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("three silent shards took %v, one after the other", took)
	}
	f.set(faultproxy.Pass, f.Shards()...)
	if got := f.served(t, "server_2"); got != "server_2" {
		t.Errorf("right after recovery a session on server_2 was served by %s", got)
	}
}

// Whoever asks for one shard is told of that one, and not that its group, whose
// other shards serve, has none.
func TestUnavailableNamesTheShard(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	f.set(faultproxy.Refuse, "server_1")
	f.wait(t, healthcache.Down, "server_1")
	var gone *shardrouter.UnavailableError
	_, err := f.Acquire(t.Context(), "server_1")
	if !errors.As(err, &gone) || gone.Shard != "server_1" || !strings.Contains(err.Error(), "shard server_1 of group default") {
		t.Errorf("got %v", err)
	}
}

// Nothing of ours stays on a drained shard but the probe's connection.
func TestDrainedShardIsLeftEmpty(t *testing.T) {
	f := newFleet(t, 2)
	busy := f.lease(t, "server_1")
	f.lease(t, "server_1").Release()
	if err := f.Health().Drain(t.Context(), "server_1", "upgrade", 0); err != nil {
		t.Fatal(err)
	}
	lab.Eventually(t, 5*time.Second, "idle connections are closed", func() bool {
		return f.OpenServerConns("server_1") == 1
	})
	busy.Release()
	lab.Eventually(t, 5*time.Second, "the last one is closed when it comes back", func() bool {
		return f.OpenServerConns("server_1") == 0
	})
	if err := f.Health().Undrain(t.Context(), "server_1"); err != nil {
		t.Fatal(err)
	}
	lab.Eventually(t, 5*time.Second, "connections are kept again", func() bool {
		f.lease(t, "server_1").Release()
		return f.OpenServerConns("server_1") == 1
	})
}

// A job inside of a request that holds the only connection.
func TestEachInsideARequestDoesNotWaitForItself(t *testing.T) {
	f := newFleet(t, 1, func(c *shardrouter.Config) { c.Shards[0].MaxConns = 1 })
	ctx := shardrouter.Track(t.Context())
	l, err := f.Lease(ctx, on("server_1"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	start := time.Now()
	err = f.Each(ctx, func(context.Context, string, *sql.Conn) error { return nil })
	if !errors.Is(err, shardrouter.ErrNestedLease) {
		t.Errorf("got %v, want ErrNestedLease", err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("took %v, want at once", took)
	}
}
