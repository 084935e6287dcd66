package sessionstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/sessionstore"
)

func TestIterate(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		m := sessionstore.New(rdb, sessionstore.Config{Prefix: "game[1]:"})
		tokens := make([]string, 300) // more than one step of the scan
		for i := range tokens {
			ctx := load(t, m, "")
			m.Put(ctx, "n", i)
			if _, err := m.Claim(ctx, sessionstore.Route{Shard: fmt.Sprintf("server_%d", i%3), Home: "x"}); err != nil {
				t.Fatal(err)
			}
			token, _, err := m.Commit(ctx)
			if err != nil {
				t.Fatal(err)
			}
			tokens[i] = token
		}
		// Neighbours that are none of our business.
		set(t, rdb, "game1:other", "version", "1", "expires", "99999999999999")
		set(t, rdb, "game[1]:dead", "version", "1", "expires", "1")
		if err := rdb.Set(t.Context(), "game[1]:string", "x", 0).Err(); err != nil {
			t.Fatal(err)
		}

		var seen []int
		// In a handler, the context already carries a session.
		within := load(t, m, tokens[0])
		err := m.Iterate(within, func(ctx context.Context) error {
			n := m.GetInt(ctx, "n")
			seen = append(seen, n)
			r, _ := m.Route(ctx)
			if want := fmt.Sprintf("server_%d", n%3); r.Shard != want || m.GetString(ctx, "db_server") != want {
				t.Errorf("session %d: route %+v", n, r)
			}
			switch n {
			case 1:
				return m.Destroy(ctx)
			case 2:
				m.Put(ctx, "n", 1002)
				_, _, err := m.Commit(ctx)
				return err
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(seen)
		if len(seen) != len(tokens) || slices.Compact(seen)[len(seen)-1] != len(tokens)-1 {
			t.Errorf("saw %d sessions: %v", len(seen), seen)
		}
		if m.Exists(load(t, m, tokens[1]), "n") {
			t.Error("session 1 was not destroyed")
		}
		if got := m.GetInt(load(t, m, tokens[2]), "n"); got != 1002 {
			t.Errorf("session 2 holds %d", got)
		}
		if m.GetInt(within, "n") != 0 || !m.Exists(within, "n") {
			t.Error("the handler's own session changed")
		}

		stop := errors.New("stop")
		if err := m.Iterate(t.Context(), func(context.Context) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("error of fn: %v", err)
		}
	})
}

func TestIterateWhenRedisFails(t *testing.T) {
	mini, rdb := breakable(t)
	m, _ := stored(t, rdb)
	mini.SetError("LOADING")
	err := m.Iterate(t.Context(), func(context.Context) error { return nil })
	if err == nil {
		t.Error("no error")
	}
	mini.SetError("")
	if err := m.SessionManager.Iterate(t.Context(), nil); !errors.Is(err, sessionstore.ErrNotLoaded) {
		t.Errorf("scs's own Iterate: %v", err)
	}
}
