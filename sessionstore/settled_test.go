package sessionstore_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/sessionstore"
)

// That a session does not go back home any more stands in Redis: it follows the
// route through claims, lost claims and a renewal, until a new route begins.
func TestSettledRoute(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		m, token := stored(t, rdb)
		away := sessionstore.Route{Group: "g", Shard: "b", Home: "a", Epoch: 1}
		if _, err := m.Claim(load(t, m, token), away); err != nil {
			t.Fatal(err)
		}
		late := load(t, m, token)
		if _, err := m.Claim(load(t, m, token), away.Returned()); err != nil {
			t.Fatal(err)
		}
		want := sessionstore.Route{Group: "g", Shard: "a", Home: "a", Epoch: 2, Settled: true}
		if stands, err := m.Claim(late, away.Moved("c")); err != nil || stands != want {
			t.Errorf("who lost follows %+v, %v, want %+v", stands, err, want)
		}

		ctx := load(t, m, token)
		if err := m.RenewToken(ctx); err != nil {
			t.Fatal(err)
		}
		renewed, _, err := m.Commit(ctx)
		if err != nil {
			t.Fatal(err)
		}
		ctx = load(t, m, renewed)
		if r, _ := m.Route(ctx); r != want {
			t.Errorf("after a renewal the route is %+v, want %+v", r, want)
		}
		for info, err := range m.All(t.Context()) {
			if err != nil || info.Route != want {
				t.Errorf("operators see %+v, %v", info.Route, err)
			}
		}

		fresh := sessionstore.Route{Group: "h", Shard: "x", Home: "x"}
		if _, err := m.Claim(ctx, fresh); err != nil {
			t.Fatal(err)
		}
		if r, _ := m.Route(load(t, m, renewed)); r.Settled || r.Shard != "x" {
			t.Errorf("a new route is %+v", r)
		}
	})
}
