package healthcache_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	hc "github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
)

// journal is a log that can be read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) has(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Contains(j.text.String(), text)
}

func (j *journal) into(cfg *hc.Config) { cfg.Logger = slog.New(slog.NewTextHandler(j, nil)) }

func drained(shard string, all ...instance) func() bool {
	return func() bool {
		for _, in := range all {
			if !in.View(shard).Drained {
				return false
			}
		}
		return true
	}
}

func undrained(shard string, all ...instance) func() bool {
	return func() bool {
		for _, in := range all {
			if in.View(shard).Drained {
				return false
			}
		}
		return true
	}
}

func TestDrainsSurviveAFlush(t *testing.T) {
	server := lab.Redis(t)
	rdb, log := server.Client(), &journal{}
	one, two, three := join(t, client(t, server), "one", log.into), join(t, client(t, server), "two", log.into), join(t, client(t, server), "three", log.into)
	until(t, soon, "all know", func() bool { return one.is("a", hc.Up)() && two.is("b", hc.Up)() && three.is("b", hc.Up)() })
	put(t, rdb, "db:drain:a", "new disks", 0)
	put(t, rdb, "db:drain:b", "new cables", time.Minute)
	until(t, soon, "all obey", func() bool { return drained("a", one, two, three)() && drained("b", one, two, three)() })

	if err := rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	until(t, soon, "the drains are written again", func() bool {
		return rdb.Get(t.Context(), "db:drain:a").Val() == "new disks" && rdb.Get(t.Context(), "db:drain:b").Val() == "new cables"
	})
	if ttl := rdb.PTTL(t.Context(), "db:drain:b").Val(); ttl <= 30*time.Second || ttl > time.Minute {
		t.Errorf("the drain of b ends in %v", ttl)
	}
	if ttl := rdb.PTTL(t.Context(), "db:drain:a").Val(); ttl != -1 {
		t.Errorf("the drain of a ends in %v", ttl)
	}
	if !log.has("written again") {
		t.Error("nobody logged it")
	}
	for _, in := range []instance{one, two, three} {
		in.neverUndrained(t, "a")
	}
	until(t, soon, "the fleet is whole again", func() bool { return stored(t, rdb, "a").State == hc.Draining })

	// A key alone that goes is an order.
	rdb.Del(t.Context(), "db:drain:a")
	until(t, soon, "the drain has ended for all", undrained("a", one, two, three))
	before := one.count("b") + two.count("b") + three.count("b")
	until(t, soon, "some time later", func() bool { return one.count("b")+two.count("b")+three.count("b") >= before+5 })
	if n := rdb.Exists(t.Context(), "db:drain:a").Val(); n != 0 {
		t.Error("an ended drain came back")
	}
}

// neverUndrained fails the test if a shard that was drained was up afterwards. On
// a busy machine its record may end before it is written again: then it is
// unknown for a moment, and drained all the same.
func (in instance) neverUndrained(t *testing.T, shard string) {
	t.Helper()
	states, _ := in.seen.states(shard)
	if _, after, _ := strings.Cut(words(states), "draining"); strings.Contains(after, "up") {
		t.Errorf("went through %v", states)
	}
}

func words(states []hc.State) string {
	all := make([]string, len(states))
	for i, s := range states {
		all[i] = s.String()
	}
	return strings.Join(all, " ")
}

// TestALateComerRestoresNothing: an instance that was away while Redis lost
// everything finds there what has been ordered since.
// A drain that is ended right after one instance has written it again is not
// written again by another that only now hears of the flush.
func TestADrainEndsRightAfterAFlush(t *testing.T) {
	client := lab.Redis(t).Client()
	all := []instance{join(t, client, "first"), join(t, client, "second"), join(t, client, "third")}
	for range 5 {
		put(t, client, "db:drain:a", "new disks", 0)
		until(t, soon, "all obey", drained("a", all...))
		if err := client.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		until(t, soon, "the drain is back", func() bool { return client.Del(t.Context(), "db:drain:a").Val() == 1 })
		until(t, soon, "the drain has ended", undrained("a", all...))
	}
}

func TestALateComerRestoresNothing(t *testing.T) {
	_, rdb := mini(t)
	one := join(t, rdb, "one")
	until(t, soon, "up", one.is("a", hc.Up))
	put(t, rdb, "db:drain:a", "new disks", 0)
	until(t, soon, "obeyed", drained("a", one))
	longAgo := fmt.Sprint(time.Now().Add(-time.Hour).UnixMilli(), "-other")
	_, err := rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		p.FlushAll(t.Context())
		p.Set(t.Context(), "db:{fleet}:generation", longAgo, 0)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	until(t, soon, "the order of the new generation counts", func() bool {
		return !one.View("a").Drained || rdb.Exists(t.Context(), "db:drain:a").Val() == 1
	})
	if rdb.Exists(t.Context(), "db:drain:a").Val() == 1 {
		t.Error("an old drain was written into a generation that is not new")
	}
}

func TestADrainsEnd(t *testing.T) {
	_, rdb := mini(t)
	one, two := join(t, rdb, "one"), join(t, rdb, "two")
	until(t, soon, "all know", func() bool { return one.is("a", hc.Up)() && two.is("a", hc.Up)() })
	put(t, rdb, "db:drain:a", "short", 15*tick)
	until(t, soon, "all obey", drained("a", one, two))
	until(t, soon, "until its end", undrained("a", one, two))
}

// TestFleetKeysOfTheWrongType: what stands in the place of the fleet's own keys
// is swept away.
func TestFleetKeysOfTheWrongType(t *testing.T) {
	_, rdb := mini(t)
	for _, key := range []string{"db:{fleet}:members", "db:{fleet}:changes", "db:{fleet}:generation"} {
		if err := rdb.RPush(t.Context(), key, "garbage").Err(); err != nil {
			t.Fatal(err)
		}
	}
	one, two := join(t, rdb, "one"), join(t, rdb, "two")
	until(t, soon, "all know", func() bool { return one.is("a", hc.Up)() && two.is("a", hc.Up)() })
	until(t, soon, "both are on the list", func() bool { return rdb.ZCard(t.Context(), "db:{fleet}:members").Val() == 2 })
	one.Close()
	until(t, soon, "who leaves is taken off", func() bool { return rdb.ZCard(t.Context(), "db:{fleet}:members").Val() == 1 })
}

// TestANewShardIsKnownToOlderInstances: instance "new" has a configuration that
// "old" has not got yet.
func TestANewShardIsKnownToOlderInstances(t *testing.T) {
	_, rdb := mini(t)
	old := join(t, rdb, "old")
	until(t, soon, "the old one knows its own", old.is("a", hc.Up))
	if !old.Known("a") || old.Known("c") {
		t.Errorf("a known %v, c known %v", old.Known("a"), old.Known("c"))
	}
	newer := join(t, rdb, "new", func(cfg *hc.Config) { cfg.Shards = []string{"a", "b", "c"} })
	until(t, soon, "the old one hears of c", func() bool { return old.Known("c") })
	if v := old.View("c"); v.State != hc.Unknown {
		t.Errorf("it is known by name only, not as %v", v.State)
	}
	put(t, rdb, "db:health:d", "garbage", 0)
	rdb.Publish(t.Context(), "db:changes", "d {e} "+strings.Repeat("x", 100))
	newer.Close()
	until(t, soon, "a shard that nobody probes is forgotten", func() bool { return !old.Known("c") })
	if old.Known("d") {
		t.Error("garbage made a shard")
	}
}

// Names that are no shards' take no place from the shards of a newer configuration.
func TestForgedNamesHideNoShard(t *testing.T) {
	_, rdb := mini(t)
	old := join(t, rdb, "old")
	until(t, soon, "the old one knows its own", old.is("a", hc.Up))
	var names strings.Builder
	for i := range 300 {
		fmt.Fprintf(&names, "ghost_%d ", i)
	}
	rdb.Publish(t.Context(), "db:changes", names.String())
	before := old.count("a")
	until(t, soon, "they were looked up", func() bool { return old.count("a") >= before+3 })
	join(t, rdb, "new", func(cfg *hc.Config) { cfg.Shards = []string{"a", "b", "c"} })
	until(t, soon, "the old one hears of c", func() bool { return old.Known("c") })
}

// TestWithoutHints: an account that may not subscribe finds everything out at
// its beats, within an interval.
func TestWithoutHints(t *testing.T) {
	server := lab.Redis(t)
	rdb := server.Client()
	err := rdb.Do(t.Context(), "ACL", "SETUSER", "mute", "on", ">secret", "allkeys", "+@all", "-subscribe", "resetchannels").Err()
	if err != nil {
		t.Fatal(err)
	}
	mute := func() *redis.Client {
		c := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "mute", Password: "secret"})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	one, two, three := join(t, mute(), "one"), join(t, mute(), "two"), join(t, mute(), "three")
	all := []instance{one, two, three}
	until(t, soon, "all know", func() bool { return one.is("a", hc.Up)() && two.is("a", hc.Up)() && three.is("a", hc.Up)() })
	put(t, rdb, "db:drain:a", "new disks", 0)
	until(t, 5*tick, "all obey", drained("a", all...)) // an interval, and slack
	for _, in := range all {
		in.say("b", hc.Down)
	}
	until(t, soon, "all agree on a death", func() bool { return one.is("b", hc.Down)() && two.is("b", hc.Down)() && three.is("b", hc.Down)() })
	until(t, soon, "and share it", func() bool { return stored(t, rdb, "b").State == hc.Down })
}
