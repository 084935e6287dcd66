package healthcache_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	hc "github.com/shardhop/shardhop/healthcache"
)

// The tests of this file share one Redis, in memory. Times are real, and short.

// An exchange with Redis may take a tick, which has to be enough on a busy machine.
const tick = 200 * time.Millisecond

// soon is long enough for everything that has to happen at some time.
const soon = 10 * time.Second

// mini starts a Redis in memory whose keys expire as time passes.
func mini(t *testing.T) (*miniredis.Miniredis, *redis.Client) {
	t.Helper()
	m := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	stop, stopped := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-stopped })
	go func() {
		defer close(stopped)
		clock := time.NewTicker(10 * time.Millisecond)
		defer clock.Stop()
		for last := time.Now(); ; {
			select {
			case <-stop:
				return
			case now := <-clock.C:
				m.FastForward(now.Sub(last))
				last = now
			}
		}
	}()
	return m, client
}

// instance is one cache of a fleet, with the servers as it sees them.
type instance struct {
	*hc.Cache
	*servers
	seen *changes
}

func join(t *testing.T, client redis.UniversalClient, name string, edit ...func(*hc.Config)) instance {
	t.Helper()
	in := instance{servers: newServers(), seen: &changes{}}
	cfg := hc.Config{
		Shards: []string{"a", "b"}, Probe: in.probe, Redis: client, Instance: name, OnChange: in.seen.add,
		Interval: tick, ProbeTimeout: 3 * tick, SuspicionTimeout: tick,
	}
	for _, e := range edit {
		e(&cfg)
	}
	in.Cache = start(t, cfg)
	return in
}

func (in instance) is(shard string, want hc.State) func() bool {
	return func() bool { return in.View(shard).State == want }
}

// stored reads the health key as an operator would.
func stored(t *testing.T, client redis.UniversalClient, shard string) hc.Status {
	t.Helper()
	var s hc.Status
	text, err := client.Get(context.Background(), "db:health:"+shard).Result()
	if err == nil {
		_ = json.Unmarshal([]byte(text), &s)
	}
	return s
}

func put(t *testing.T, client redis.UniversalClient, key, value string, ttl time.Duration) {
	t.Helper()
	if err := client.Set(t.Context(), key, value, ttl).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestOneProbesForAll(t *testing.T) {
	_, client := mini(t)
	one := func(cfg *hc.Config) { cfg.Shards = []string{"a"} } // of several, each would probe some
	first := join(t, client, "first", one)
	until(t, soon, "first instance knows", first.is("a", hc.Up))
	second, third := join(t, client, "second", one), join(t, client, "third", one)
	until(t, soon, "second instance knows", second.is("a", hc.Up))
	until(t, soon, "third instance knows", third.is("a", hc.Up))
	before := first.count("a")
	until(t, soon, "five more probes", func() bool { return first.count("a") >= before+5 })
	if n := second.count("a") + third.count("a"); n != 0 {
		t.Errorf("the others probed %d times", n)
	}
	for _, in := range []instance{first, second, third} {
		in.say("a", hc.Down)
	}
	until(t, soon, "all know of the death", func() bool {
		return first.is("a", hc.Down)() && second.is("a", hc.Down)() && third.is("a", hc.Down)()
	})
	until(t, soon, "the prober says so for all", func() bool {
		s := stored(t, client, "a")
		return s.State == hc.Down && s.By == "first" && s.Reason == "told to be down"
	})
}

// A record that somebody else wrote does not stand, although the prober has read
// it itself and all others believe it.
func TestAForgedRecordDoesNotStand(t *testing.T) {
	_, client := mini(t)
	one := func(cfg *hc.Config) { cfg.Shards = []string{"a"} }
	prober := join(t, client, "prober", one)
	until(t, soon, "the prober writes", func() bool { return stored(t, client, "a").By == "prober" })
	other := join(t, client, "other", one)
	until(t, soon, "the other one reads it", other.is("a", hc.Up))
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000Z") // as a record has it
	put(t, client, "db:health:a", fmt.Sprintf(`{"state":"down","since":%q,"checked_at":%q,"by":"liar"}`, now, now), 0)
	client.Publish(t.Context(), "db:changes", "a")
	until(t, soon, "the record is right again", func() bool {
		s := stored(t, client, "a")
		return s.State == hc.Up && s.By == "prober"
	})
	until(t, soon, "the other one knows", other.is("a", hc.Up))
	if states, _ := prober.seen.states("a"); slices.Contains(states, hc.Down) {
		t.Errorf("the prober itself believed it: %v", states)
	}
}

func TestTheRecord(t *testing.T) {
	m, client := mini(t)
	in := join(t, client, "web-1", func(cfg *hc.Config) {
		cfg.Probe = func(context.Context, string) hc.Result {
			return hc.Result{State: hc.ReadOnly, Reason: `1290 "read-only"`, Nodes: []hc.Node{{Addr: "10.0.0.1:3306", State: hc.ReadOnly, Role: "standby"}}}
		}
	})
	until(t, soon, "a record", func() bool { return stored(t, client, "a").State == hc.ReadOnly })
	s := stored(t, client, "a")
	if s.By != "web-1" || s.Reason != `1290 "read-only"` || len(s.Nodes) != 1 || s.Nodes[0].Role != "standby" {
		t.Errorf("record = %+v", s)
	}
	if d := time.Since(s.CheckedAt).Abs(); d > time.Minute {
		t.Errorf("checked %v ago", d)
	}
	if ttl := m.TTL("db:health:a"); ttl <= 0 || ttl > 3*tick {
		t.Errorf("TTL %v", ttl)
	}
	if ttl := m.TTL(hc.LeaseKey("a")); ttl <= 0 || ttl > 3*tick {
		t.Errorf("lease TTL %v", ttl)
	}
	until(t, soon, "checked again", func() bool { return stored(t, client, "a").CheckedAt.After(s.CheckedAt) })
	if again := stored(t, client, "a"); !again.Since.Equal(s.Since) {
		t.Errorf("since moved from %v to %v without a change", s.Since, again.Since)
	}
	// What another instance would make of it.
	text, _ := m.Get("db:health:a")
	if _, err := hc.DecodeStatus(text, time.Now()); err != nil {
		t.Error(err)
	}
	in.Close()
	if m.Exists(hc.LeaseKey("a")) {
		t.Error("the lease was not handed back")
	}
}

// TestRedisClockIsWritten compares the dates that the script writes with those
// that Go makes of the same moment.
func TestRedisClockIsWritten(t *testing.T) {
	for _, moment := range []string{
		"2000-02-29T23:59:59.000Z", "2024-02-28T12:00:00.007Z", "2024-03-01T00:00:00.000Z",
		"2026-12-31T23:59:59.999Z", "2027-01-01T00:00:00.000Z", "2100-03-01T01:02:03.450Z",
	} {
		t.Run(moment, func(t *testing.T) {
			m, client := mini(t)
			at, err := time.Parse(time.RFC3339, moment)
			if err != nil {
				t.Fatal(err)
			}
			m.SetTime(at)
			join(t, client, "web-1")
			until(t, soon, "a record", func() bool { return m.Exists("db:health:a") })
			text, _ := m.Get("db:health:a")
			if !strings.Contains(text, fmt.Sprintf(`"checked_at":%q`, moment)) {
				t.Error(text)
			}
		})
	}
}

func TestASilentProbersLeaseIsNotTaken(t *testing.T) {
	_, client := mini(t)
	put(t, client, hc.LeaseKey("a"), "silent/TOKEN", time.Hour)
	in := join(t, client, "heir")
	until(t, soon, "the heir probes for itself", in.is("a", hc.Up))
	before := in.count("a")
	until(t, soon, "and goes on", func() bool { return in.count("a") >= before+3 })
	if holder := client.Get(t.Context(), hc.LeaseKey("a")).Val(); holder != "silent/TOKEN" {
		t.Errorf("the lease was taken: %s", holder)
	}
	if s := stored(t, client, "a"); s.By != "" {
		t.Errorf("written without the lease: %+v", s)
	}
	client.Del(t.Context(), hc.LeaseKey("a")) // as when its time is over
	until(t, soon, "the heir writes", func() bool { return stored(t, client, "a").By == "heir" })
}

func TestCloseHandsOver(t *testing.T) {
	_, client := mini(t)
	first := join(t, client, "first")
	until(t, soon, "first probes", first.is("a", hc.Up))
	second := join(t, client, "second")
	first.Close()
	until(t, soon, "second takes over within an interval", func() bool { return second.count("a") > 0 })
}

func TestALostLeaseWritesNothing(t *testing.T) {
	_, client := mini(t)
	in := join(t, client, "old")
	until(t, soon, "a record", func() bool { return stored(t, client, "a").By == "old" })
	put(t, client, hc.LeaseKey("a"), "new/TOKEN", time.Minute)
	put(t, client, "db:health:a", "the new one's", time.Minute)
	before := in.count("b")
	until(t, soon, "three more rounds", func() bool { return in.count("b") >= before+3 })
	if text := client.Get(t.Context(), "db:health:a").Val(); text != "the new one's" {
		t.Errorf("written without the lease: %s", text)
	}
}

func TestANewProberContinuesTheHistory(t *testing.T) {
	_, client := mini(t)
	now := time.Now().UTC()
	since := now.Add(-time.Hour).Format("2006-01-02T15:04:05.000Z")
	put(t, client, "db:health:a", fmt.Sprintf(`{"state":"down","since":%q,"checked_at":%q,"by":"dead"}`,
		since, now.Format(time.RFC3339Nano)), 3*tick)
	in := join(t, client, "heir")
	until(t, soon, "down is read", in.is("a", hc.Down))
	until(t, soon, "up again", in.is("a", hc.Up))
	if _, own := in.seen.states("a"); own[0] {
		t.Error("a death read from Redis counts as own")
	}
	if n := in.count("a"); n < 2 {
		t.Errorf("up after %d probe", n)
	}
}

func TestOwnEvidenceBeatsRedis(t *testing.T) {
	_, client := mini(t)
	one := func(cfg *hc.Config) { cfg.Shards = []string{"a"} } // the first keeps its lease
	prober := join(t, client, "prober", one)
	until(t, soon, "the prober writes", func() bool { return stored(t, client, "a").By == "prober" })
	witness := join(t, client, "witness", one) // without it, whoever joins is asked at once
	until(t, soon, "they count each other", func() bool { return prober.Instances() == 2 && witness.Instances() == 2 })
	prober.say("a", hc.Down)
	witness.say("a", hc.Down)
	until(t, soon, "down is shared", func() bool { return stored(t, client, "a").State == hc.Down })
	other := join(t, client, "other", one)
	until(t, soon, "down is read", other.is("a", hc.Down))
	if v := other.Check(t.Context(), "a"); v.State != hc.Up {
		t.Errorf("checked as %v", v.State)
	}
	other.say("a", hc.Down) // for when it is asked as a witness
	until(t, soon, "old evidence yields", other.is("a", hc.Down))
	if stored(t, client, "a").By != "prober" {
		t.Error("written without the lease")
	}
	for _, in := range []instance{prober, witness, other} {
		in.say("a", hc.Up)
	}
	until(t, soon, "up is read", other.is("a", hc.Up))
	other.freeze("a")
	// A witness that a busy machine holds up abstains, and is asked again.
	contest := func() bool {
		other.Suspect("a", "i/o timeout")
		return other.Settle(t.Context(), "a").State == hc.Down && other.View("a").Contested
	}
	until(t, soon, "a witness contradicts", contest)
	if s := stored(t, client, "a"); s.State != hc.Up {
		t.Errorf("one instance's broken path became everybody's: %+v", s)
	}
	before := other.count("a")
	until(t, soon, "it goes on looking for itself", func() bool {
		if !other.View("a").Contested {
			contest()
			before = other.count("a")
		}
		return other.count("a") >= before+4
	})
	if v := other.View("a"); v.State != hc.Down || !v.Contested {
		t.Errorf("its path is still broken, and %v, contested %v", v.State, v.Contested)
	}
	other.say("a", hc.Up)
	until(t, soon, "and until its path is whole", other.is("a", hc.Up))
	if other.View("a").Contested {
		t.Error("nothing is left to contest")
	}
}

func TestGarbageInEveryKey(t *testing.T) {
	_, client := mini(t)
	for _, shard := range []string{"a", "b"} {
		put(t, client, "db:health:"+shard, "\x00\xff garbage", 0)
		put(t, client, hc.LeaseKey(shard), "garbage without end", 0)
	}
	one, two := join(t, client, "one"), join(t, client, "two")
	until(t, soon, "keys are read as unknown, and somebody takes over", func() bool {
		return one.is("a", hc.Up)() && two.is("a", hc.Up)() && one.is("b", hc.Up)() && two.is("b", hc.Up)()
	})
	until(t, soon, "the keys are mended", func() bool { return stored(t, client, "b").State == hc.Up })
}

func TestKeysOfTheWrongType(t *testing.T) {
	m, client := mini(t)
	for _, key := range []string{"db:health:a", "db:drain:a", hc.LeaseKey("a")} {
		m.HSet(key, "field", "value")
	}
	in := join(t, client, "one")
	until(t, soon, "the keys are mended", func() bool { return stored(t, client, "a").State == hc.Up })
	if v := in.View("a"); v.Drained {
		t.Errorf("view = %+v", v)
	}
}

func TestARecordWithoutProberEnds(t *testing.T) {
	_, client := mini(t)
	put(t, client, hc.LeaseKey("z"), "dead/TOKEN", time.Minute)
	watcher := join(t, client, "two", func(cfg *hc.Config) { cfg.Shards = []string{"z"} })
	// Nobody refreshes z's record: it says down until its TTL ends, and
	// without a prober to learn from the watcher then looks for itself.
	now := time.Now().UTC().Format(time.RFC3339Nano)
	put(t, client, "db:health:z", fmt.Sprintf(`{"state":"down","since":%q,"checked_at":%q}`, now, now), 4*tick)
	until(t, soon, "down is read", watcher.is("z", hc.Down))
	until(t, soon, "the record ended", watcher.is("z", hc.Unknown))
	until(t, soon, "own probes serve", watcher.is("z", hc.Up))
}

func TestFlushAll(t *testing.T) {
	m, client := mini(t)
	one, two := join(t, client, "one"), join(t, client, "two")
	until(t, soon, "both know", func() bool { return one.is("a", hc.Up)() && two.is("a", hc.Up)() })
	var before hc.Status
	until(t, soon, "the record is there", func() bool {
		before = stored(t, client, "a")
		return before.State == hc.Up
	})
	m.FlushAll()
	until(t, soon, "the record is back", func() bool { return stored(t, client, "a").State == hc.Up })
	if s := stored(t, client, "a"); s.State == hc.Up && s.Since.Sub(before.Since).Abs() > 10*tick {
		t.Errorf("since %v, was %v", s.Since, before.Since)
	}
	until(t, soon, "both know", func() bool { return one.is("a", hc.Up)() && two.is("a", hc.Up)() })
	for _, in := range []instance{one, two} {
		states, _ := in.seen.states("a")
		for _, s := range states {
			if s != hc.Up && s != hc.Unknown {
				t.Errorf("the flush made a %v", s)
			}
		}
	}
}

func TestScriptFlush(t *testing.T) {
	_, client := mini(t)
	in := join(t, client, "one")
	until(t, soon, "a record", func() bool { return stored(t, client, "a").State == hc.Up })
	client.ScriptFlush(t.Context())
	in.say("a", hc.Busy)
	until(t, soon, "written all the same", func() bool { return stored(t, client, "a").State == hc.Busy })
}

func TestRedisGone(t *testing.T) {
	m, client := mini(t)
	m.Close()
	one := join(t, client, "one")
	until(t, soon, "probes without Redis", one.is("a", hc.Up))
	one.say("a", hc.Down)
	until(t, soon, "and goes on", one.is("a", hc.Down))
	if err := m.Restart(); err != nil {
		t.Fatal(err)
	}
	until(t, soon, "and shares when it is back", func() bool { return stored(t, client, "a").State == hc.Down })
}
