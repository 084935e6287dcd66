package healthcache_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	hc "github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
)

// Somebody puts megabytes into the keys of a shard. No instance fetches them, and
// the record is written again.
func TestHugeValuesAreNotFetched(t *testing.T) {
	const size, enough = 8 << 20, 1 << 20
	server := lab.Redis(t)
	all, meters := metered(t, server)
	upForBoth(t, all[0], all[1])
	huge := strings.Repeat("x", size)
	put(t, server.Client(), "db:drain:a", huge, 0)
	until(t, soon, "both obey", drained("a", all[0], all[1]))
	put(t, server.Client(), "db:health:a", huge, 0)
	put(t, server.Client(), "db:health:b", huge, 0)
	server.Client().Publish(context.Background(), "db:changes", "a b")
	until(t, soon, "the records are written again", func() bool {
		return stored(t, server.Client(), "a").State != hc.Unknown && stored(t, server.Client(), "b").State == hc.Up
	})
	put(t, server.Client(), hc.LeaseKey("b"), huge, time.Minute)
	before := [2]int{all[0].count("b"), all[1].count("b")}
	until(t, soon, "both probe a shard whose lease is nonsense", func() bool {
		return all[0].count("b") >= before[0]+3 && all[1].count("b") >= before[1]+3
	})
	meters.within(t, enough)
}

// The clocks of the instances and of Redis are hours apart, and Redis's jumps.
// Nothing goes by the difference: records are believed, deaths shared, witnesses
// heard and drains kept to their time.
func TestClocksThatAreHoursApart(t *testing.T) {
	for _, tc := range []struct {
		name  string
		apart time.Duration
		jump  time.Duration
	}{
		{"redis behind", -5 * time.Hour, 0},
		{"redis ahead", 5 * time.Hour, 0},
		{"redis jumps ahead", 0, 5 * time.Hour},
		{"redis jumps back", 0, -5 * time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, client := mini(t)
			apart := run(t, m.SetTime, tc.apart)
			first, second := join(t, client, "first"), join(t, client, "second")
			agree := func(shard string, want hc.State) {
				t.Helper()
				until(t, soon, "both and the key say "+string(want), func() bool {
					return first.is(shard, want)() && second.is(shard, want)() && stored(t, client, shard).State == want
				})
			}
			agree("a", hc.Up)
			apart.Store(int64(tc.apart + tc.jump))
			until(t, soon, "both have beaten by the new time, and count each other", func() bool {
				now := time.Now().Add(tc.apart + tc.jump)
				from, to := fmt.Sprint(now.UnixMilli()), fmt.Sprint(now.Add(time.Minute).UnixMilli())
				lives := client.ZCount(t.Context(), "db:{fleet}:members", from, to).Val()
				return lives == 2 && first.Instances() == 2 && second.Instances() == 2
			})
			until(t, soon, "the records have dates of the new time alone", func() bool {
				for _, shard := range []string{"a", "b"} {
					s, now := stored(t, client, shard), time.Now().Add(tc.apart+tc.jump)
					if s.State != hc.Up || s.CheckedAt.Sub(now).Abs() > time.Minute || s.Since.After(s.CheckedAt) {
						return false
					}
				}
				return true
			})
			first.say("a", hc.Down)
			second.say("a", hc.Down)
			agree("a", hc.Down)
			first.say("b", hc.Down)
			until(t, soon, "one is contradicted", func() bool {
				first.Suspect("b", "broken pipe") // the other one may be the prober
				// A witness that is held up abstains, and the death is shared for a while.
				return first.is("b", hc.Down)() && first.View("b").Contested && second.View("b").State != hc.Down
			})
			first.say("a", hc.Up)
			second.say("a", hc.Up)
			agree("a", hc.Up)
			put(t, client, "db:drain:a", "new disks", 10*tick)
			until(t, soon, "both obey", drained("a", first, second))
			until(t, soon, "until its time is over", func() bool { return !first.View("a").Drained && !second.View("a").Drained })
		})
	}
}

// An instance goes on with a death that another one wrote by a clock hours away:
// the shard is no longer down for it than for the other.
func TestHeirWhoseClockIsHoursApart(t *testing.T) {
	for _, apart := range []time.Duration{-5 * time.Hour, 5 * time.Hour} {
		t.Run(apart.String(), func(t *testing.T) {
			m, client := mini(t)
			run(t, m.SetTime, apart)
			first := join(t, client, "first")
			until(t, soon, "it probes", first.is("a", hc.Up))
			first.say("a", hc.Down)
			until(t, soon, "its word is shared", func() bool { return stored(t, client, "a").State == hc.Down })
			heir := join(t, client, "heir")
			until(t, soon, "the heir hears", heir.is("a", hc.Down))
			first.Close()
			until(t, soon, "the heir has the shard serve again", heir.is("a", hc.Up))
			if falls := heir.View("a").Falls; falls > 1 {
				t.Errorf("%d falls of one", falls)
			}
		})
	}
}

// A record that stays unreadable however often it is written, since Redis's clock is
// absurd, is not news to all others at every look.
func TestAnAbsurdClockMakesNoStorm(t *testing.T) {
	m, client := mini(t)
	run(t, m.SetTime, -time.Since(time.Unix(1000, 0)))
	in := join(t, client, "one", func(cfg *hc.Config) { cfg.Shards = []string{"a"} })
	news := func() int64 {
		n, _ := client.Get(t.Context(), "db:{fleet}:counter").Int64() // 0: nothing was counted yet
		return n
	}
	until(t, soon, "it writes", func() bool { return stored(t, client, "a").State == hc.Up })
	before, probes := news(), in.count("a")
	until(t, soon, "it has probed again and again", func() bool { return in.count("a") >= probes+8 })
	if n := news() - before; n > 16 {
		t.Errorf("%d changes in eight intervals", n)
	}
}

// run sets a clock so far from this host's as the value returned says.
func run(t *testing.T, set func(time.Time), apart time.Duration) *atomic.Int64 {
	t.Helper()
	var far atomic.Int64
	far.Store(int64(apart))
	tick := func() { set(time.Now().Add(time.Duration(far.Load()))) }
	tick()
	stop, stopped := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-stopped })
	go func() {
		defer close(stopped)
		clock := time.NewTicker(5 * time.Millisecond)
		defer clock.Stop()
		for {
			select {
			case <-stop:
				return
			case <-clock.C:
				tick()
			}
		}
	}()
	return &far
}

// Two instances have one name. They are two all the same: one probes, both are
// heard, and neither takes the other's word for its own.
func TestTwoInstancesOfOneName(t *testing.T) {
	_, client := mini(t)
	one := func(cfg *hc.Config) { cfg.Shards = []string{"a"} }
	first := join(t, client, "web", one)
	until(t, soon, "the first one writes", func() bool { return stored(t, client, "a").By == "web" })
	second := join(t, client, "web", one)
	until(t, soon, "they know of each other", func() bool { return first.Instances() == 2 && second.Instances() == 2 })
	before := first.count("a")
	until(t, soon, "three more probes", func() bool { return first.count("a") >= before+3 })
	if n := second.count("a"); n > 1 {
		t.Errorf("the other one probed %d times", n)
	}
	second.say("a", hc.Down)
	second.Suspect("a", "broken pipe")
	until(t, soon, "the one with the broken path is contradicted", func() bool {
		return second.is("a", hc.Down)() && second.View("a").Contested
	})
	if s := stored(t, client, "a"); s.State != hc.Up {
		t.Errorf("the key says %v", s.State)
	}
	first.say("a", hc.Down)
	until(t, soon, "a death is shared", func() bool { return stored(t, client, "a").State == hc.Down })
	first.Close()
	until(t, soon, "the other one takes over", func() bool { return second.count("a") > 0 && second.is("a", hc.Down)() })
}
