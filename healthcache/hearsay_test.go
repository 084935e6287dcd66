package healthcache_test

import (
	"fmt"
	"testing"
	"time"

	hc "github.com/shardhop/shardhop/healthcache"
)

// A forged record says that a shard is down which this instance has not looked at:
// hearsay, which its own probe ends.
func TestForgedDownIsHearsay(t *testing.T) {
	_, client := mini(t)
	one, two := join(t, client, "one"), join(t, client, "two")
	until(t, soon, "both know", func() bool { return one.is("a", hc.Up)() && two.is("a", hc.Up)() })
	reader := two
	if stored(t, client, "a").By == "two" {
		reader = one
	}
	lie := func() bool {
		now := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
		put(t, client, "db:health:a", fmt.Sprintf(`{"state":"down","since":%q,"checked_at":%q,"by":"liar"}`, now, now), time.Minute)
		client.Publish(t.Context(), "db:changes", "a")
		return reader.View("a").Hearsay
	}
	until(t, soon, "the lie is read, and known for hearsay", lie)
	before := reader.count("a")
	until(t, soon, "one look is enough to know better", func() bool {
		lie()
		reader.Look("a")
		return reader.is("a", hc.Up)()
	})
	if v := reader.View("a"); v.Hearsay {
		t.Errorf("view = %+v", v)
	}
	if n := reader.count("a") - before; n > 2 {
		t.Errorf("%d probes for one look", n)
	}
	reader.Look("a") // of a shard that is up: nothing happens
}

// A shard that really is down is looked at once by an instance that asks, and then
// believed for as long as it is.
func TestDeathByHearsayIsBorneOutOnce(t *testing.T) {
	_, client := mini(t)
	one, two := join(t, client, "one"), join(t, client, "two")
	until(t, soon, "both know", func() bool { return one.is("a", hc.Up)() && two.is("a", hc.Up)() })
	for _, in := range []instance{one, two} {
		in.say("a", hc.Down)
	}
	until(t, soon, "the fleet says so", func() bool { return stored(t, client, "a").State == hc.Down })
	three := join(t, client, "three")
	three.say("a", hc.Down)
	until(t, soon, "the newcomer has read of the death, and looked for itself", func() bool {
		three.Look("a") // unless it was called as a witness before
		return three.is("a", hc.Down)() && !three.View("a").Hearsay && three.count("a") > 0
	})
	// Its own evidence grows old, and the record is believed.
	after := stored(t, client, "a").CheckedAt
	until(t, soon, "nine intervals later", func() bool {
		if v := three.View("a"); v.State != hc.Down || v.Hearsay {
			t.Fatalf("view = %+v", v)
		}
		return stored(t, client, "a").CheckedAt.Sub(after) > 9*tick
	})
}

// Who takes the probing over with a forged record takes two good probes to call the
// shard up. Until then it goes on by hearsay: nobody is to be moved for good.
func TestInheritedDownIsHearsay(t *testing.T) {
	_, client := mini(t)
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	put(t, client, "db:health:a", fmt.Sprintf(`{"state":"down","since":%q,"checked_at":%q,"by":"liar"}`, now, now), time.Minute)
	one := join(t, client, "one")
	heard := false
	until(t, soon, "it finds the shard up", func() bool {
		v := one.View("a")
		if v.State == hc.Down && !v.Hearsay {
			t.Fatalf("after %d good probes: %+v", one.count("a"), v)
		}
		heard = heard || v.Hearsay && one.count("a") > 0
		return v.State == hc.Up
	})
	if !heard {
		t.Error("the record was not read")
	}
}
