package healthcache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	hc "github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
)

// trio is three instances on one Redis, as they stand in three processes; the
// first one probes both shards.
func trio(t *testing.T, client redis.UniversalClient, edit ...func(*hc.Config)) (prober, second, third instance) {
	t.Helper()
	prober = join(t, client, "prober", edit...)
	until(t, soon, "the prober writes", func() bool {
		return stored(t, client, "a").By == "prober" && stored(t, client, "b").By == "prober"
	})
	second, third = join(t, client, "second", edit...), join(t, client, "third", edit...)
	until(t, soon, "all know", func() bool {
		return second.is("a", hc.Up)() && third.is("a", hc.Up)() && second.is("b", hc.Up)() && third.is("b", hc.Up)()
	})
	return prober, second, third
}

func TestADeathIsSharedWhenWitnessesAgree(t *testing.T) {
	_, client := mini(t)
	prober, second, third := trio(t, client)
	all := []instance{prober, second, third}
	for _, in := range all {
		in.say("a", hc.Down)
	}
	until(t, soon, "all agree", func() bool {
		return !slices.ContainsFunc(all, func(in instance) bool {
			v := in.View("a")
			return v.State != hc.Down || v.Contested
		})
	})
	for _, in := range all[1:] {
		if in.count("a") == 0 {
			t.Error("down was shared without the word of a witness")
		}
	}
}

func TestAContradictedProberHandsOn(t *testing.T) {
	_, client := mini(t)
	// Witnesses get the time that they need on a busy machine.
	patient := func(cfg *hc.Config) { cfg.ProbeTimeout, cfg.SuspicionTimeout = 5*tick, 5*tick }
	prober, second, third := trio(t, client, patient)
	prober.freeze("a")
	until(t, soon, "its own eyes say down", prober.is("a", hc.Down))
	until(t, soon, "somebody else probes", func() bool {
		by := stored(t, client, "a").By
		return by == "second" || by == "third"
	})
	if v := prober.View("a"); v.State != hc.Down || !v.Contested {
		t.Errorf("%v, contested %v: the path is broken for this one only", v.State, v.Contested)
	}
	for _, in := range []instance{second, third} {
		if states, _ := in.seen.states("a"); slices.Contains(states, hc.Down) {
			t.Errorf("one broken path became everybody's: %v", states)
		}
	}
	prober.say("a", hc.Up)
	until(t, soon, "its path is whole again", prober.is("a", hc.Up))
}

func TestAWrongDownHeals(t *testing.T) {
	_, client := mini(t)
	prober := join(t, client, "prober")
	until(t, soon, "the prober writes", func() bool { return stored(t, client, "a").By == "prober" })
	prober.say("a", hc.Down) // and nobody is there to contradict
	until(t, soon, "down is shared", func() bool { return stored(t, client, "a").State == hc.Down })
	second := join(t, client, "second")
	until(t, soon, "the second one reads it", second.is("a", hc.Down))
	until(t, 2*soon, "it is asked in time and takes over", func() bool {
		s := stored(t, client, "a")
		return s.State == hc.Up && s.By == "second"
	})
	until(t, soon, "the first one knows that it is alone", func() bool { return prober.View("a").Contested })
}

// TestAnAccuserFindsTheProber: who is not the prober has it look at once, and
// the death is shared although no probe was due.
func TestAnAccuserFindsTheProber(t *testing.T) {
	_, client := mini(t)
	long := func(cfg *hc.Config) {
		cfg.Interval, cfg.ProbeTimeout, cfg.SuspicionTimeout = 4*time.Second, time.Second, time.Second
	}
	prober, second, third := trio(t, client, long)
	for _, in := range []instance{prober, second, third} {
		in.say("a", hc.Down)
	}
	second.Suspect("a", "connection refused")
	// Hints carry the call, the testimonies and the result; no interval ends.
	until(t, 3*time.Second, "all know", func() bool {
		return prober.is("a", hc.Down)() && second.is("a", hc.Down)() && third.is("a", hc.Down)() && !second.View("a").Contested
	})
}

func TestAWitnessThatKnowsNoSuchShardAbstains(t *testing.T) {
	_, client := mini(t)
	prober := join(t, client, "prober", func(cfg *hc.Config) { cfg.Shards = []string{"a", "b", "new"} })
	until(t, soon, "the prober writes", func() bool { return stored(t, client, "new").State == hc.Up })
	older := join(t, client, "older")
	until(t, soon, "the older one knows its own", older.is("a", hc.Up))
	prober.say("new", hc.Down)
	until(t, soon, "down is shared", func() bool { return stored(t, client, "new").State == hc.Down })
}

func TestADeadWitnessAbstains(t *testing.T) {
	_, client := mini(t)
	prober := join(t, client, "prober")
	until(t, soon, "the prober writes", func() bool { return stored(t, client, "a").State == hc.Up })
	score := float64(time.Now().Add(time.Minute).UnixMilli())
	client.ZAdd(t.Context(), "db:{fleet}:members", redis.Z{Score: score, Member: "gone/TOKEN"})
	until(t, soon, "the prober has heard of it", func() bool { return client.ZCard(t.Context(), "db:{fleet}:members").Val() == 2 })
	prober.say("a", hc.Down)
	until(t, soon, "own eyes", prober.is("a", hc.Down))
	until(t, soon, "down is shared all the same", func() bool { return stored(t, client, "a").State == hc.Down })
}

// besideSilence is an instance beside another one that holds the lease of a, has
// said that a is up, and says nothing more.
func besideSilence(t *testing.T, client redis.UniversalClient) (in instance, log *journal) {
	t.Helper()
	now := time.Now().UTC()
	put(t, client, hc.LeaseKey("a"), "silent/TOKEN", time.Minute)
	put(t, client, "db:health:a", fmt.Sprintf(`{"state":"up","since":%q,"checked_at":%q,"by":"silent"}`,
		now.Format(time.RFC3339Nano), now.Add(20*time.Second).Format(time.RFC3339Nano)), time.Minute)
	client.ZAdd(t.Context(), "db:{fleet}:members", redis.Z{Score: float64(now.Add(time.Minute).UnixMilli()), Member: "silent/TOKEN"})
	log = &journal{}
	in = join(t, client, "one", log.into)
	until(t, soon, "up is read", in.is("a", hc.Up))
	return in, log
}

// TestTheRecordIsAWitness: no witness answers, but the prober has written
// since the call that the shard is up.
func TestTheRecordIsAWitness(t *testing.T) {
	_, client := mini(t)
	in, log := besideSilence(t, client)
	in.say("a", hc.Down)
	in.Suspect("a", "refused")
	until(t, soon, "it is down here", in.is("a", hc.Down))
	until(t, soon, "and the record contradicts", func() bool { return log.has("for this instance alone") })
	until(t, soon, "for as long as requests come", func() bool {
		in.Suspect("a", "refused")
		v := in.View("a")
		return v.State == hc.Down && v.Contested
	})
}

// losesCalls gives no answer to the first calls for witnesses.
type losesCalls struct {
	lab.NoHook
	left atomic.Int64
}

func (l *losesCalls) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.Contains(fmt.Sprint(cmd.Args()...), "db:{fleet}:mail:silent/TOKEN") && l.left.Add(-1) >= 0 {
			err := errors.New("no answer in time")
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

// An instance whose host has no time loses its connections and the answers of Redis
// in the same moment. What it makes of that alone does not stand.
func TestALostCallForWitnessesIsRepeated(t *testing.T) {
	_, client := mini(t)
	lost := &losesCalls{}
	lost.left.Store(1)
	client.AddHook(lost)
	in, log := besideSilence(t, struct{ redis.UniversalClient }{client}) // of a bare client the cache makes one without hooks
	in.say("a", hc.Down)
	in.Suspect("a", "refused")
	until(t, soon, "the call is lost", func() bool { return lost.left.Load() < 1 })
	until(t, soon, "the record contradicts", func() bool { return log.has("for this instance alone") })
}

// TestWhoJustUsedAShardLooksForItself: a down that only Redis speaks of is a
// reason to look, and no more.
func TestWhoJustUsedAShardLooksForItself(t *testing.T) {
	_, client := mini(t)
	// Somebody who does nothing holds the lease, so that nobody puts the record
	// right before it is read.
	put(t, client, hc.LeaseKey("a"), "silent/TOKEN", time.Minute)
	record := func(state string) {
		now := time.Now().UTC().Format(time.RFC3339Nano)
		put(t, client, "db:health:a", fmt.Sprintf(`{"state":%q,"since":%q,"checked_at":%[2]q,"by":"silent"}`, state, now), time.Minute)
	}
	record("up")
	in := join(t, client, "one")
	until(t, soon, "up is read", in.is("a", hc.Up))
	in.Succeeded("a")
	in.Succeeded("nobody")
	if n := in.count("a"); n != 0 {
		t.Fatalf("%d probes before there is a reason", n)
	}
	record("down")
	client.Publish(t.Context(), "db:changes", "a")
	until(t, soon, "it has looked", func() bool {
		in.Succeeded("a") // the shard stays in use
		return in.count("a") > 0
	})
	states, _ := in.seen.states("a")
	if slices.Contains(states, hc.Down) {
		t.Errorf("went through %v", states)
	}
}

func TestWitnesses(t *testing.T) {
	members := make([]string, 40)
	for i := range members {
		members[i] = fmt.Sprintf("web-%d/T", i)
	}
	chosen := hc.Witnesses("a", "web-3/T", "web-7", members)
	if len(chosen) != hc.MaxWitnesses || slices.Contains(chosen, "web-3/T") {
		t.Errorf("%v", chosen)
	}
	if chosen[0] != "web-7/T" {
		t.Errorf("the prober was not asked first: %v", chosen)
	}
	slices.Reverse(members)
	if again := hc.Witnesses("a", "web-3/T", "web-7", members); !slices.Equal(again, chosen) {
		t.Error("the choice depends on the order of the members")
	}
	if other := hc.Witnesses("b", "web-3/T", "web-7", members); slices.Equal(other, chosen) {
		t.Error("every shard has the same witnesses")
	}
	if members[0] != "web-39/T" {
		t.Error("the list of the caller was changed")
	}
	if few := hc.Witnesses("a", "x", "", []string{"x", "y"}); !slices.Equal(few, []string{"y"}) {
		t.Errorf("%v", few)
	}
	if nobody := hc.Witnesses("a", "x", "", []string{"x"}); len(nobody) != 0 {
		t.Errorf("%v", nobody)
	}
}

func TestJudge(t *testing.T) {
	call := time.UnixMilli(1_000_000)
	tests := []struct {
		said   string // witness=word@milliseconds since the call
		want   hc.Verdict
		reason string
	}{
		{"", hc.Unjudged, "nobody has spoken"},
		{"x=down@5", hc.Unjudged, "y has not spoken"},
		{"x=down@5 y=down@9", hc.Agreed, "both looked"},
		{"x=down@5 y=unknown@9", hc.Agreed, "y abstains"},
		{"x=unknown@5 y=unknown@9", hc.Agreed, "nobody can say"},
		{"x=alive@5", hc.Contradicted, "one who reaches it is enough"},
		{"x=down@5 y=alive@9", hc.Contradicted, "and outweighs the others"},
		{"x=alive@-5 y=down@9", hc.Unjudged, "before the call nothing was wrong"},
		{"x=down@0 y=down@0", hc.Agreed, "the moment of the call counts"},
		{"z=alive@5 x=down@5 y=down@5", hc.Agreed, "z was not asked"},
	}
	for _, tt := range tests {
		said := map[string]string{}
		for _, part := range strings.Fields(tt.said) {
			witness, rest, _ := strings.Cut(part, "=")
			word, after, _ := strings.Cut(rest, "@")
			var millis int64
			if _, err := fmt.Sscan(after, &millis); err != nil {
				t.Fatal(err)
			}
			said[witness] = fmt.Sprint(word, " ", call.UnixMilli()+millis)
		}
		if got := hc.Judge([]string{"x", "y"}, said, call); got != tt.want {
			t.Errorf("%q: %v, want %v: %s", tt.said, got, tt.want, tt.reason)
		}
	}
	said := map[string]string{"x": "perhaps 1000005", "y": "down", "z": "down x"}
	if got := hc.Judge([]string{"x"}, said, call); got != hc.Unjudged {
		t.Errorf("garbage is %v", got)
	}
}
