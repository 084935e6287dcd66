package healthcache_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	hc "github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
)

// farAhead is a score, in Redis's milliseconds, that nobody reaches.
const farAhead = 9e15

// tokens lists the instances that live as Redis knows them.
func tokens(t *testing.T, client *redis.Client, n int64) (all []string) {
	t.Helper()
	until(t, soon, "the fleet is whole", func() bool {
		all = client.ZRange(t.Context(), "db:{fleet}:members", 0, -1).Val()
		return int64(len(all)) == n
	})
	return all
}

func upForBoth(t *testing.T, one, two instance) {
	t.Helper()
	until(t, soon, "both know", func() bool {
		return one.is("a", hc.Up)() && two.is("a", hc.Up)() && one.is("b", hc.Up)() && two.is("b", hc.Up)()
	})
}

// Somebody puts megabytes into the keys that are the fleet's own. No instance
// fetches them, and the fleet goes on.
func TestHugeFleetKeysAreNotFetched(t *testing.T) {
	const size, enough = 8 << 20, 1 << 20
	server := lab.Redis(t)
	all, meters := metered(t, server)
	upForBoth(t, all[0], all[1])
	rdb, huge := server.Client(), strings.Repeat("x", size)
	for _, token := range tokens(t, rdb, 2) {
		rdb.SAdd(t.Context(), "db:{fleet}:mail:"+token, huge)
		rdb.HSet(t.Context(), "db:{fleet}:witness:a", token, huge)
	}
	rdb.ZAdd(t.Context(), "db:{fleet}:members", redis.Z{Score: float64(time.Now().Add(time.Minute).UnixMilli()), Member: huge})
	rdb.ZAdd(t.Context(), "db:{fleet}:changes", redis.Z{Score: farAhead, Member: huge})
	put(t, rdb, "db:{fleet}:counter", huge, 0)
	put(t, rdb, "db:{fleet}:generation", huge, 0)
	all[0].say("a", hc.Down)
	all[1].say("a", hc.Down)
	until(t, soon, "a death is shared", func() bool { return stored(t, rdb, "a").State == hc.Down })
	put(t, rdb, "db:drain:b", "new disks", 0)
	until(t, soon, "a drain is obeyed", drained("b", all[0], all[1]))
	meters.within(t, enough)
}

// A counter that does not count, and changes that are never over, hide no news
// from an instance that hears no hints, and do not keep the fleet busy.
func TestForgedCounters(t *testing.T) {
	server := lab.Redis(t)
	rdb := server.Client()
	err := rdb.Do(t.Context(), "ACL", "SETUSER", "mute", "on", ">secret", "allkeys", "+@all", "-subscribe", "resetchannels").Err()
	if err != nil {
		t.Fatal(err)
	}
	mute := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "mute", Password: "secret"})
	t.Cleanup(func() { _ = mute.Close() })
	one, two := join(t, mute, "one"), join(t, mute, "two")
	upForBoth(t, one, two)
	for _, forged := range []struct{ counter, why string }{
		{"nan", "no number"},
		{"inf", "no end"},
		{"9007199254740992", "from here on one more is as many"},
		{"1e300", "no integer on the wire"},
		{"-7", "less than nothing"},
		{"0x10", "another spelling than Redis is asked with"},
	} {
		for i := range 1100 {
			rdb.ZAdd(t.Context(), "db:{fleet}:changes", redis.Z{Score: farAhead, Member: fmt.Sprintf("s%d", i)})
		}
		put(t, rdb, "db:{fleet}:counter", forged.counter, 0)
		until(t, soon, "the counter counts again after "+forged.counter+": "+forged.why, func() bool {
			n, err := rdb.Get(t.Context(), "db:{fleet}:counter").Int64()
			return err == nil && n > 1e12 && n < 9e12
		})
		put(t, rdb, "db:drain:a", "new disks", 0)
		until(t, 6*tick, "both obey after "+forged.counter, drained("a", one, two)) // an interval, and slack
		rdb.Del(t.Context(), "db:drain:a")
		until(t, 6*tick, "and it ends", undrained("a", one, two))
	}
}

// Thousands of instances that do not live drown out no witness, and are gone soon.
func TestForgedMembers(t *testing.T) {
	server := lab.Redis(t)
	rdb := server.Client()
	one, two := join(t, client(t, server), "one"), join(t, client(t, server), "two")
	upForBoth(t, one, two)
	tokens(t, rdb, 2)
	forged := make([]redis.Z, 2000)
	for i := range forged {
		forged[i] = redis.Z{Score: farAhead, Member: fmt.Sprintf("web%d/FORGED", i)}
	}
	rdb.ZAdd(t.Context(), "db:{fleet}:members", forged...)
	until(t, soon, "they are gone", func() bool {
		return rdb.ZCard(t.Context(), "db:{fleet}:members").Val() == 2 && one.Instances() == 2 && two.Instances() == 2
	})
	one.say("a", hc.Down)
	until(t, soon, "the real one contradicts", func() bool {
		one.Suspect("a", "broken pipe")
		return one.is("a", hc.Down)() && one.View("a").Contested
	})
	if s := stored(t, rdb, "a"); s.State == hc.Down {
		t.Errorf("one instance's broken path became everybody's: %+v", s)
	}
}

// Where the mail of a witness, or what it would say, has no place, it is made.
func TestWitnessesAreHeardWhateverStandsInTheirPlace(t *testing.T) {
	server := lab.Redis(t)
	rdb := server.Client()
	one, two := join(t, client(t, server), "one"), join(t, client(t, server), "two")
	upForBoth(t, one, two)
	all := tokens(t, rdb, 2)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // for as long as it takes
		defer close(stopped)
		for clock := time.NewTicker(5 * time.Millisecond); ; {
			select {
			case <-stop:
				clock.Stop()
				return
			case <-clock.C:
			}
			for _, token := range all {
				rdb.SetNX(context.Background(), "db:{fleet}:mail:"+token, "garbage", time.Minute)
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
	put(t, rdb, "db:{fleet}:witness:a", "garbage", 0)
	put(t, rdb, "db:{fleet}:witness:b", "garbage", 0)
	for _, shard := range []string{"a", "b"} { // who probes one of them may not probe the other
		one.say(shard, hc.Down)
		until(t, soon, "the other one contradicts", func() bool {
			one.Suspect(shard, "broken pipe")
			return one.is(shard, hc.Down)() && one.View(shard).Contested && two.is(shard, hc.Up)()
		})
		until(t, soon, "and its word stands", func() bool {
			return rdb.HLen(t.Context(), "db:{fleet}:witness:"+shard).Val() > 0
		})
	}
	for _, s := range []hc.Status{stored(t, rdb, "a"), stored(t, rdb, "b")} {
		if s.State == hc.Down {
			t.Errorf("one instance's broken path became everybody's: %+v", s)
		}
	}
}

// A witness that does not live says that a dead shard does. Once nothing is left of
// it, the fleet agrees.
func TestAForgedWitnessIsForgotten(t *testing.T) {
	server := lab.Redis(t)
	rdb := server.Client()
	one, two := join(t, client(t, server), "one"), join(t, client(t, server), "two")
	upForBoth(t, one, two)
	members, liar := "db:{fleet}:members", "liar/FORGED"
	lie := func() bool {
		now := rdb.Time(t.Context()).Val().UnixMilli()
		rdb.ZAdd(t.Context(), members, redis.Z{Score: float64(now + 60_000), Member: liar})
		rdb.HSet(t.Context(), "db:{fleet}:witness:a", liar, fmt.Sprint("alive ", now))
		return false
	}
	lie()
	one.say("a", hc.Down)
	two.say("a", hc.Down)
	var first, second bool // not at the same moment: each looks again at times
	until(t, soon, "the lie is believed", func() bool {
		lie()
		first, second = first || one.View("a").Contested, second || two.View("a").Contested
		return first && second
	})
	rdb.ZRem(t.Context(), members, liar)
	rdb.Del(t.Context(), "db:{fleet}:witness:a")
	until(t, soon, "the death is shared", func() bool { return stored(t, rdb, "a").State == hc.Down })
	until(t, soon, "and nothing is contested", func() bool { return !one.View("a").Contested && !two.View("a").Contested })
}
