package sessionstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/sessionstore"
)

// TestSessionTakesNoMoreMemoryThanUnderScs asks Redis what a session takes, key
// and expiry included: as it is created, with a route, and after so many saves
// that the hash remembers as many as it ever does. Beside it stand scs's codec
// and the key of its Redis stores, without the route, and with the shard and
// the home among the values, as an application would keep them by itself. Redis
// allocates in steps, and of these sizes only four values fall just beyond one.
func TestSessionTakesNoMoreMemoryThanUnderScs(t *testing.T) {
	rdb := lab.Redis(t).Client()
	m := sessionstore.New(rdb, patient)
	for _, n := range sessionSizes {
		values := sessionOf(n)
		stock := stockMemory(t, rdb, values)
		values["db_server"], values["home"] = "server_1", "server_1"
		stockRouted := stockMemory(t, rdb, values)

		ctx := load(t, m, "")
		for key, value := range sessionOf(n) {
			m.Put(ctx, key, value)
		}
		token, _, err := m.Commit(ctx)
		if err != nil {
			t.Fatal(err)
		}
		key := "session:" + m.Key(ctx)
		created := memory(t, rdb, key)
		if _, err := m.Claim(ctx, sessionstore.Route{Group: "default"}.Moved("server_1")); err != nil {
			t.Fatal(err)
		}
		routed := memory(t, rdb, key)
		for i := range 8 {
			ctx = load(t, m, token)
			m.Put(ctx, "uid", int64(1_204_534+i))
			if _, _, err := m.Commit(ctx); err != nil {
				t.Fatal(err)
			}
		}
		saved := memory(t, rdb, key)

		t.Logf("%2d values: %d bytes created, %d with a route, %d after 8 saves; scs %d, with the route %d",
			n, created, routed, saved, stock, stockRouted)
		most := stock
		if n == 4 {
			most = stockRouted
		}
		if created > stock || routed > stock || saved > most {
			t.Errorf("%d values take more than under scs", n)
		}
	}
}

// stockMemory is what scs stores in Redis for values.
func stockMemory(t *testing.T, rdb *redis.Client, values map[string]any) int64 {
	t.Helper()
	data, err := scs.GobCodec{}.Encode(time.Now().Add(time.Hour).UTC(), values)
	if err != nil {
		t.Fatal(err)
	}
	key := "scs:session:" + strings.Repeat("t", 43) // as long as every token
	if err := rdb.Set(t.Context(), key, data, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	return memory(t, rdb, key)
}

func memory(t *testing.T, rdb *redis.Client, key string) int64 {
	t.Helper()
	n, err := rdb.MemoryUsage(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n
}
