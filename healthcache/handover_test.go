package healthcache_test

import (
	"slices"
	"testing"

	hc "github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
)

func TestHandovers(t *testing.T) {
	for _, tc := range []struct {
		holders map[string]string
		members []string
		want    []string
		reason  string
	}{
		{map[string]string{"a": "me"}, []string{"me"}, nil, "nobody else is there"},
		{map[string]string{"a": "me"}, []string{"me", "x"}, nil, "one lease cannot be shared"},
		{map[string]string{"a": "me", "b": "me"}, []string{"me", "x"}, []string{"a→x"}, "half of it"},
		{map[string]string{"a": "me", "b": "me", "c": "x"}, []string{"me", "x", "y"}, []string{"a→y"}, "to who holds least"},
		{map[string]string{"a": "me", "b": "me", "c": "gone"}, []string{"me", "x"}, nil, "two of three is a part of two"},
		{map[string]string{"a": "me", "b": "me"}, nil, nil, "nobody is known to live"},
		{map[string]string{"a": "x", "b": "x"}, []string{"me", "x"}, nil, "what others hold is theirs to give"},
	} {
		if got := hc.Handovers("me", tc.holders, tc.members); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.reason, got, tc.want)
		}
	}
}

// Three instances and three shards: whoever was first gives two leases away, and
// nobody loses sight of a shard meanwhile.
func TestLeasesAreSpread(t *testing.T) {
	client := lab.Redis(t).Client()
	shards := []string{"a", "b", "c"}
	var all []instance
	for _, name := range []string{"first", "second", "third"} {
		all = append(all, join(t, client, name, func(cfg *hc.Config) { cfg.Shards = shards }))
	}
	until(t, 2*soon, "every instance holds one lease", func() bool {
		holders := map[string]bool{}
		for _, shard := range shards {
			if stored(t, client, shard).State != hc.Up {
				return false
			}
			holders[client.Get(t.Context(), hc.LeaseKey(shard)).Val()] = true
		}
		return len(holders) == len(all)
	})
	for _, in := range all {
		for _, shard := range shards {
			in.seen.want(t, shard, hc.Up)
		}
	}
}
