package shardrouter_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// holding has the router hold requests for as long as a player would wait.
func holding(c *shardrouter.Config) { c.HoldTimeout = time.Minute }

// leased is what became of a request for a lease.
type leased struct {
	shard string
	err   error
}

// ask asks for a lease in the background, and gives it back at once.
func (f *fleet) ask(ctx context.Context, shard string) <-chan leased {
	done := make(chan leased, 1)
	go func() {
		l, err := f.Lease(ctx, on(shard), "")
		if err != nil {
			done <- leased{err: err}
			return
		}
		l.Release()
		done <- leased{shard: l.Shard()}
	}()
	return done
}

func (f *fleet) stat(shard string) shardrouter.Stats {
	for _, s := range f.Stats() {
		if s.Shard == shard {
			return s
		}
	}
	return shardrouter.Stats{}
}

func (f *fleet) heldAt(t *testing.T, shard string, n int) {
	t.Helper()
	lab.Eventually(t, 20*time.Second, "requests are held", func() bool { return f.stat(shard).Held == n })
}

// A thousand wait for the only shard, the rest are refused at once, and when it
// comes back all who waited are served by its few connections.
func TestHoldServesWhomItHolds(t *testing.T) {
	const most, all, conns = 1000, 1500, 10
	f := newFleet(t, 1, holding, func(c *shardrouter.Config) {
		c.HoldMax = most
		c.Shards[0].MaxConns = conns
	})
	f.proxies["server_1"].SetMode(faultproxy.Refuse)
	f.wait(t, healthcache.Down, "server_1")

	var served, full atomic.Int32
	var peak atomic.Int64
	var requests sync.WaitGroup
	for range all {
		requests.Go(func() {
			l, err := f.Lease(t.Context(), on("server_1"), "")
			switch {
			case err == nil:
				served.Add(1)
				if n := int64(f.stat("server_1").InUse); n > peak.Load() {
					peak.Store(n)
				}
				l.Release()
			case errors.Is(err, shardrouter.ErrHoldFull) && errors.Is(err, shardrouter.ErrUnavailable):
				full.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	lab.Eventually(t, 30*time.Second, "500 of 1,500 are refused while 1,000 are held", func() bool {
		return full.Load() == all-most && f.stat("server_1").Held == most
	})
	if n := f.OpenServerConns("server_1"); n > 0 {
		t.Errorf("%d connections are taken by requests that are held", n)
	}
	f.proxies["server_1"].SetMode(faultproxy.Pass)
	requests.Wait()
	if served.Load() != most || full.Load() != all-most {
		t.Errorf("%d served and %d refused, want %d and %d", served.Load(), full.Load(), most, all-most)
	}
	if peak.Load() > conns {
		t.Errorf("%d leases were out at once, want %d at most", peak.Load(), conns)
	}
	if s := f.stat("server_1"); s.Held != 0 || s.InUse != 0 {
		t.Errorf("%d held and %d in use at the end", s.Held, s.InUse)
	}
}

// Where every shard of a group is out, its players wait for whichever comes
// back first.
func TestHoldOfAnExhaustedGroup(t *testing.T) {
	f := newFleet(t, 3, holding, func(c *shardrouter.Config) { c.Shards[2].Group = "west" })
	for _, shard := range []string{"server_1", "server_2"} {
		f.proxies[shard].SetMode(faultproxy.Refuse)
	}
	done := f.ask(t.Context(), "server_1")
	f.heldAt(t, "server_1", 1)
	f.proxies["server_2"].SetMode(faultproxy.Pass)
	if got := <-done; got.err != nil || got.shard != "server_2" {
		t.Errorf("served by %q (%v), want server_2, which came back first", got.shard, got.err)
	}
	if n := f.stat("server_3").Leases; n > 0 {
		t.Errorf("%d leases of another group's shard", n)
	}
}

// What ON_FAILURE makes of a shard that stays out.
func TestOnFailure(t *testing.T) {
	tests := []struct {
		policy shardrouter.OnFailure
		want   string // the shard that serves; empty: none
		is     error
		reason string
	}{
		{shardrouter.OnFailureRotate, "server_2", nil, "it does not wait where another can serve"},
		{shardrouter.OnFailureHoldFirst, "server_2", nil, "it goes on when it has waited"},
		{shardrouter.OnFailureHold, "", shardrouter.ErrHoldOver, "it never goes on"},
		{shardrouter.OnFailureFail, "", shardrouter.ErrUnavailable, "it neither waits nor goes on"},
	}
	for _, tt := range tests {
		t.Run(string(tt.policy), func(t *testing.T) {
			t.Parallel()
			var waits atomic.Int32
			f := newFleet(t, 2, func(c *shardrouter.Config) {
				c.HoldTimeout = 2 * time.Second
				c.Shards[0].OnFailure = tt.policy
				c.Observer.Held = func(string, time.Duration, error) { waits.Add(1) }
			})
			f.proxies["server_1"].SetMode(faultproxy.Refuse)
			got := <-f.ask(t.Context(), "server_1")
			if got.shard != tt.want || !errors.Is(got.err, tt.is) {
				t.Errorf("served by %q (%v), want %q: %s", got.shard, got.err, tt.want, tt.reason)
			}
			held := tt.policy == shardrouter.OnFailureHold || tt.policy == shardrouter.OnFailureHoldFirst
			if (waits.Load() > 0) != held {
				t.Errorf("held %d times: %s", waits.Load(), tt.reason)
			}
			// The outage is older now than anybody waits.
			if again := <-f.ask(t.Context(), "server_1"); again.shard != tt.want {
				t.Errorf("then served by %q (%v)", again.shard, again.err)
			}
		})
	}
}

// Two shards that fail over at the same time do not release each other.
func TestTwoHoldsAtOnce(t *testing.T) {
	f := newFleet(t, 2, holding, func(c *shardrouter.Config) {
		c.Shards[0].Group, c.Shards[1].Group = "east", "west"
	})
	ask := func(shard, group string) <-chan leased {
		done := make(chan leased, 1)
		go func() {
			l, err := f.Lease(t.Context(), shardrouter.Route{Group: group, Shard: shard, Home: shard}, "")
			if err == nil {
				l.Release()
			}
			done <- leased{shard, err}
		}()
		return done
	}
	f.proxies["server_1"].SetMode(faultproxy.Refuse)
	f.proxies["server_2"].SetMode(faultproxy.Freeze)
	one, two := ask("server_1", "east"), ask("server_2", "west")
	f.heldAt(t, "server_1", 1)
	f.heldAt(t, "server_2", 1)
	f.proxies["server_1"].SetMode(faultproxy.Pass)
	if got := <-one; got.err != nil {
		t.Fatal(got.err)
	}
	if n := f.stat("server_2").Held; n != 1 {
		t.Fatalf("%d requests are held for the shard that is still out, want 1", n)
	}
	f.proxies["server_2"].SetMode(faultproxy.Pass)
	if got := <-two; got.err != nil {
		t.Error(got.err)
	}
}

// A server that refuses the account is not one to wait for.
func TestNoHoldForAWrongSetting(t *testing.T) {
	router, err := shardrouter.New(shardrouter.Config{
		Logger: quiet(),
		Shards: []shardrouter.Shard{{Name: "server_1", DSN: "nobody:wrong@tcp(" + shardrouter.DSN(server.Addr()) + ")/test"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer router.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := router.Lease(ctx, on("server_1"), ""); !errors.Is(err, shardrouter.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable without a wait", err)
	}
}

// A request with a deadline of its own is held no longer than that.
func TestHoldHeedsTheRequestsDeadline(t *testing.T) {
	f := newFleet(t, 1, holding)
	f.proxies["server_1"].SetMode(faultproxy.Refuse)
	f.wait(t, healthcache.Down, "server_1")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := f.Lease(ctx, on("server_1"), ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the request's own deadline", err)
	}
	if n := f.stat("server_1").Held; n != 0 {
		t.Errorf("%d requests are left in the hold", n)
	}
}
