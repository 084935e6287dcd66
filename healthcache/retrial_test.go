package healthcache_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	hc "github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
)

// A witness that was held up is taken to agree for as long as the accuser's own
// probe counts: then the record says again that the shard is up, and the next
// accusation finds the witness awake.
func TestSilentWitnessIsAskedAgain(t *testing.T) {
	server := lab.Redis(t)
	proxy := faultproxy.New(t, server.Addr())
	slow := redis.NewClient(&redis.Options{Addr: proxy.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = slow.Close() })
	one := func(cfg *hc.Config) { cfg.Shards = []string{"a"} } // the first holds its lease
	witness := join(t, slow, "witness", one)
	until(t, soon, "the witness probes", witness.is("a", hc.Up))
	accuser := join(t, client(t, server), "accuser", one)
	until(t, soon, "both know, and count each other", func() bool {
		return accuser.is("a", hc.Up)() && accuser.Instances() == 2 && witness.Instances() == 2
	})

	proxy.SetMode(faultproxy.Freeze)
	accuser.say("a", hc.Down)
	insist := func(want bool) func() bool {
		return func() bool {
			accuser.Suspect("a", "broken pipe") // its players go on trying
			v := accuser.View("a")
			return v.State == hc.Down && v.Contested == want
		}
	}
	until(t, soon, "its word is believed", insist(false))
	proxy.SetMode(faultproxy.Pass)
	until(t, soon, "the witness contradicts", insist(true))
	if s := stored(t, server.Client(), "a").State; s == hc.Down {
		t.Error("the fleet believes it")
	}
}

// An instance that stands alone believes a death that only its own broken path
// made. Whoever joins is asked at once, not when the time for that has come, and
// also where another holds the lease and the record cannot be read.
func TestWhoJoinsIsAskedAboutTheDead(t *testing.T) {
	for _, held := range []bool{true, false} {
		t.Run(map[bool]string{true: "its own lease", false: "another's lease"}[held], func(t *testing.T) {
			_, client := mini(t)
			unhurried := func(cfg *hc.Config) {
				cfg.Shards, cfg.Interval = []string{"a"}, soon/8 // called again by itself after ten
			}
			if !held {
				put(t, client, hc.LeaseKey("a"), "stranger", time.Hour)
				put(t, client, "db:health:a", "no record", time.Hour)
			}
			first := join(t, client, "first", unhurried)
			until(t, soon, "it has looked, and knows that it is alone", func() bool { return first.is("a", hc.Up)() && first.Instances() == 1 })
			first.say("a", hc.Down)
			until(t, soon, "it believes itself", func() bool {
				first.Suspect("a", "broken pipe")
				return first.is("a", hc.Down)() && !first.View("a").Contested
			})
			second := join(t, client, "second", unhurried)
			until(t, soon, "the other one serves players, and contradicts", func() bool {
				second.Succeeded("a")
				return first.is("a", hc.Down)() && first.View("a").Contested && second.is("a", hc.Up)()
			})
		})
	}
}
