package healthcache_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	hc "github.com/shardhop/shardhop/healthcache"
)

func TestDrainInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers()
		c, seen := alone(t, s)
		pass(500 * time.Millisecond)
		if err := c.Drain(t.Context(), "a", "new disks", 5*time.Second); err != nil {
			t.Fatal(err)
		}
		v := c.View("a")
		if v.State != hc.Draining || !v.Drained || v.DrainReason != "new disks" {
			t.Errorf("view = %+v", v)
		}
		pass(6 * time.Second)
		wantState(t, c, "a", hc.Up)
		if err := c.Drain(t.Context(), "a", "", 0); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		wantState(t, c, "a", hc.Draining)
		if err := c.Undrain(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		wantState(t, c, "a", hc.Up)
		synctest.Wait()
		seen.want(t, "a", hc.Up, hc.Draining, hc.Up, hc.Draining, hc.Up)
	})
}

func TestDrainRefuses(t *testing.T) {
	c := build(t, hc.Config{Shards: []string{"a"}, Probe: newServers().probe})
	if err := c.Drain(t.Context(), "x", "", 0); !errors.Is(err, hc.ErrUnknownShard) {
		t.Errorf("unknown shard: %v", err)
	}
	if err := c.Undrain(t.Context(), "x"); !errors.Is(err, hc.ErrUnknownShard) {
		t.Errorf("unknown shard: %v", err)
	}
	if err := c.Drain(t.Context(), "a", "", -1); err == nil {
		t.Error("a negative ttl was taken")
	}
}

func TestDrainIsSeenByAll(t *testing.T) {
	m, client := mini(t)
	one, two := join(t, client, "one"), join(t, client, "two")
	until(t, soon, "both know", func() bool { return one.is("a", hc.Up)() && two.is("a", hc.Up)() })
	if err := one.Drain(t.Context(), "a", "new disks", time.Minute); err != nil {
		t.Fatal(err)
	}
	if v := one.View("a"); v.State != hc.Draining {
		t.Errorf("who gave the order sees %v", v.State)
	}
	until(t, soon, "the other obeys", two.is("a", hc.Draining))
	if v := two.View("a"); v.DrainReason != "new disks" || !v.Drained {
		t.Errorf("view = %+v", v)
	}
	if ttl := m.TTL("db:drain:a"); ttl <= 0 || ttl > time.Minute {
		t.Errorf("TTL %v", ttl)
	}
	until(t, soon, "the record says so too", func() bool { return stored(t, client, "a").State == hc.Draining })
	if err := two.Undrain(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if v := two.View("a"); v.State != hc.Up {
		t.Errorf("who ended the drain sees %v", v.State)
	}
	until(t, soon, "the other too", one.is("a", hc.Up))
	// An operator with nothing but redis-cli.
	put(t, client, "db:drain:b", "", 0)
	until(t, soon, "an empty reason drains", func() bool { return one.View("b").Drained && two.View("b").Drained })
	client.Del(t.Context(), "db:drain:b")
	until(t, soon, "deleting ends it", func() bool { return !one.View("b").Drained && !two.View("b").Drained })
}

func TestDrainFailsWithoutAnAnswer(t *testing.T) {
	m, client := mini(t)
	in := join(t, client, "one")
	until(t, soon, "up", in.is("a", hc.Up))
	m.SetError("LOADING")
	if err := in.Drain(t.Context(), "a", "x", 0); err == nil || !strings.Contains(err.Error(), "drain a") {
		t.Errorf("err = %v", err)
	}
	if err := in.Undrain(t.Context(), "a"); err == nil {
		t.Error("an undrain that Redis did not take was no error")
	}
	if in.View("a").Drained {
		t.Error("an order that failed is obeyed")
	}
	m.SetError("")
}

// Whoever is told of a change looks at the snapshot to see what it means. While
// the notice is kept from being queued, nobody can have been told, and the
// snapshot has to be new already.
func TestSnapshotIsNewBeforeAnybodyIsTold(t *testing.T) {
	in := join(t, nil, "alone")
	until(t, soon, "a is up", in.is("a", hc.Up))
	release := sync.OnceFunc(hc.HoldNotices(in.Cache))
	defer release()
	ordered := make(chan error, 1)
	go func() { ordered <- in.Drain(t.Context(), "a", "new disks", 0) }()
	until(t, soon, "the snapshot shows the drain", func() bool { return in.View("a").Drained })
	release()
	if err := <-ordered; err != nil {
		t.Fatal(err)
	}
}

// A drain of a shard that is not up changes no state, and is told all the same.
func TestDrainOfAShardThatIsNotUpIsTold(t *testing.T) {
	in := join(t, nil, "alone", func(cfg *hc.Config) { cfg.Shards = []string{"a"} })
	in.say("a", hc.Busy)
	until(t, soon, "a is busy", in.is("a", hc.Busy))
	before, _ := in.seen.states("a")
	if err := in.Drain(t.Context(), "a", "new disks", 0); err != nil {
		t.Fatal(err)
	}
	until(t, soon, "the drain is told", func() bool {
		now, _ := in.seen.states("a")
		return len(now) > len(before)
	})
	if v := in.View("a"); v.State != hc.Busy || !v.Drained {
		t.Errorf("%v, drained %v", v.State, v.Drained)
	}
}
