package shardrouter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// away is the route of a session that was rotated from server_1 to server_2.
func away() shardrouter.Route {
	return shardrouter.Route{Group: shardrouter.DefaultGroup, Shard: "server_2", Home: "server_1", Epoch: 2}
}

func TestHomecoming(t *testing.T) {
	up := healthcache.View{Status: healthcache.Status{State: healthcache.Up}}
	tests := []struct {
		reason string
		change func(*shardrouter.Homecoming)
		want   bool
	}{
		{"home has been up for long enough", func(*shardrouter.Homecoming) {}, true},
		{"fail-back is off", func(h *shardrouter.Homecoming) { h.Stable = 0 }, false},
		{"home is not up for long enough", func(h *shardrouter.Homecoming) { h.UpFor = 59 * time.Second }, false},
		{"it is at home", func(h *shardrouter.Homecoming) { h.Route = h.Route.Moved("server_1") }, false},
		{"it has been back once", func(h *shardrouter.Homecoming) { h.Route = h.Route.Returned().Moved("server_2") }, false},
		{"a shard that is not configured", func(h *shardrouter.Homecoming) { h.Home = shardrouter.Shard{} }, false},
		{"a shard of another group", func(h *shardrouter.Homecoming) { h.Home.Group = "west" }, false},
		{"a shard that takes no players", func(h *shardrouter.Homecoming) { h.Home.Weight = shardrouter.WeightNone }, false},
		{"an operator wants no work there", func(h *shardrouter.Homecoming) { h.View.Drained = true }, false},
		{"the same, as a state", func(h *shardrouter.Homecoming) { h.View.State = healthcache.Draining }, false},
		{"somebody doubts it", func(h *shardrouter.Homecoming) { h.View.State = healthcache.Suspect }, false},
		{"it is full", func(h *shardrouter.Homecoming) { h.View.State = healthcache.Busy }, false},
		{"nobody knows", func(h *shardrouter.Homecoming) { h.View.State = healthcache.Unknown }, false},
	}
	for _, tt := range tests {
		h := shardrouter.Homecoming{
			Route: away(), Key: "key", View: up, UpFor: 2 * time.Minute, Stable: time.Minute,
			Home: shardrouter.Shard{Name: "server_1", Group: shardrouter.DefaultGroup, Weight: 1},
		}
		tt.change(&h)
		if got := h.Due(); got != tt.want {
			t.Errorf("due %v, want %v: %s", got, tt.want, tt.reason)
		}
	}
}

// The sessions of one home go back evenly over the stable time, and each at its
// own moment, whichever instance decides.
func TestHomecomingIsSpread(t *testing.T) {
	const sessions, parts = 10_000, 10
	h := shardrouter.Homecoming{
		Route: away(), View: healthcache.View{Status: healthcache.Status{State: healthcache.Up}}, Stable: time.Minute,
		Home: shardrouter.Shard{Name: "server_1", Group: shardrouter.DefaultGroup, Weight: 1},
	}
	before := 0
	for part := 1; part <= parts; part++ {
		h.UpFor = time.Minute + time.Duration(part)*time.Minute/parts
		back := 0
		for i := range sessions {
			if h.Key = fmt.Sprint("session ", i); h.Due() {
				back++
			}
		}
		if share := back - before; share < sessions/parts*8/10 || share > sessions/parts*12/10 {
			t.Errorf("%d of %d sessions go back in part %d of %d", share, sessions, part, parts)
		}
		before = back
	}
	if before != sessions {
		t.Errorf("%d of %d sessions are back at the end", before, sessions)
	}
}

func TestFailback(t *testing.T) {
	t.Parallel()
	const stable = 500 * time.Millisecond
	f := newFleet(t, 2, func(c *shardrouter.Config) { c.Failback = stable })
	f.set(faultproxy.Refuse, "server_1")
	f.wait(t, healthcache.Down, "server_1")
	f.set(faultproxy.Pass, "server_1")
	back := time.Now()
	lab.Eventually(t, 15*time.Second, "the session goes back", func() bool {
		l, err := f.Lease(t.Context(), away(), "key")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Release()
		if l.Returned() != (l.Shard() == "server_1") || l.Detour() {
			t.Fatalf("a lease of %s: returned %v, detour %v", l.Shard(), l.Returned(), l.Detour())
		}
		return l.Returned()
	})
	if took := time.Since(back); took < stable {
		t.Errorf("back after %v, want home to be up for %v first", took, stable)
	}
	if got := f.served(t, "server_2"); got != "server_2" {
		t.Errorf("a session whose home is server_2 was served by %s", got)
	}
	if s := f.Stats()[0]; s.Returned != 1 || s.RotatedAway != 0 {
		t.Errorf("%d returns and %d rotations counted", s.Returned, s.RotatedAway)
	}
}

// Where home gives no connection, the session is served where it is.
func TestNoWayHome(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, func(c *shardrouter.Config) {
		c.Failback, c.HealthInterval = time.Second, time.Second
		c.Shards[0].MaxConns = 1
	})
	due := time.NewTimer(3 * time.Second)
	<-due.C
	l := f.lease(t, "server_1") // home is full
	start := time.Now()
	full, err := f.Lease(t.Context(), away(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if full.Shard() != "server_2" || time.Since(start) > 2*time.Second {
		t.Errorf("served by %s after %v, want at once where it is", full.Shard(), time.Since(start))
	}
	full.Release()
	l.Release()

	f.Cut("server_1") // no idle connection, and no new one either
	f.set(faultproxy.Silent, "server_1")
	start = time.Now()
	silent, err := f.Lease(t.Context(), away(), "key")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Release()
	if took := time.Since(start); silent.Shard() != "server_2" || took > 8*time.Second {
		t.Errorf("served by %s after %v, want where it is", silent.Shard(), took)
	}
}
