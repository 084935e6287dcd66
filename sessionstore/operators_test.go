package sessionstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/sessionstore"
)

// everyRedis runs test against miniredis, a real Redis and a cluster.
func everyRedis(t *testing.T, test func(t *testing.T, rdb redis.UniversalClient)) {
	t.Run("miniredis", func(t *testing.T) { test(t, miniClient(t)) })
	t.Run("redis", func(t *testing.T) { test(t, lab.Redis(t).Client()) })
	t.Run("cluster", func(t *testing.T) { test(t, lab.RedisCluster(t, 3).Client()) })
}

// crowd stores n sessions of the users 0, 1 and 2, each at the shard of its
// number; every tenth has no route. It returns their keys by user.
func crowd(t *testing.T, m *sessionstore.Manager, n int) (keys map[int][]string) {
	t.Helper()
	keys = map[int][]string{}
	for i := range n {
		ctx := load(t, m, "")
		m.Put(ctx, "uid", i%3)
		if i%10 != 9 {
			shard := fmt.Sprintf("server_%d", i%3)
			if _, err := m.Claim(ctx, sessionstore.Route{Group: "g", Shard: shard, Home: shard}); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := m.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		keys[i%3] = append(keys[i%3], m.Key(ctx))
	}
	return keys
}

func TestCountAndListByShard(t *testing.T) {
	everyRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		m := sessionstore.New(rdb, sessionstore.Config{Prefix: "game[1]:"})
		crowd(t, m, 600)
		set(t, rdb, "game1:other", "version", "1", "expires", "99999999999999")
		set(t, rdb, "game[1]:dead", "version", "1", "expires", "1")
		set(t, rdb, "game[1]:taken", "version", "1", "expires", "99999999999999", "renewing", mark(time.Minute))

		count, err := m.CountByShard(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for shard, want := range map[string]int{"server_0": 180, "server_1": 180, "server_2": 180, "": 60} {
			if count[shard] != want {
				t.Errorf("%q has %d sessions, want %d", shard, count[shard], want)
			}
		}

		listed := map[string]sessionstore.Info{}
		cursor, pages := "", 0
		for {
			page, next, err := m.List(t.Context(), "server_1", cursor, 50)
			if err != nil {
				t.Fatal(err)
			}
			pages++
			for _, info := range page {
				listed[info.Key] = info
			}
			if cursor = next; cursor == "" {
				break
			}
		}
		if len(listed) != 180 {
			t.Errorf("listed %d sessions", len(listed))
		}
		if _, ok := rdb.(*redis.ClusterClient); ok && pages < 2 {
			t.Error("all of a cluster is on one page")
		}
		for key, info := range listed {
			want := sessionstore.Route{Group: "g", Shard: "server_1", Home: "server_1", Epoch: 1}
			if left := time.Until(info.Expires); info.Route != want || left < 23*time.Hour || left > 24*time.Hour {
				t.Errorf("session %s: %+v", key, info)
			}
		}
		everybody := 0
		for cursor, more := "", true; more; more = cursor != "" {
			page, next, err := m.List(t.Context(), "", cursor, 1000)
			if err != nil {
				t.Fatal(err)
			}
			everybody, cursor = everybody+len(page), next
		}
		if everybody < 600 {
			t.Errorf("listed %d sessions of all shards", everybody)
		}
	})
}

func TestEndAllSessionsOfAUser(t *testing.T) {
	everyRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		m := sessionstore.New(rdb, patient)
		keys := crowd(t, m, 600)
		if n, err := m.EndAll(t.Context(), "uid", int64(1)); n != 0 || err != nil {
			t.Errorf("an int64 is no int: ended %d, %v", n, err)
		}
		if n, err := m.EndAll(t.Context(), "name", 1); n != 0 || err != nil {
			t.Errorf("another key: ended %d, %v", n, err)
		}
		n, err := m.EndAll(t.Context(), "uid", 1, keys[1][7])
		if n != 199 || err != nil {
			t.Errorf("ended %d, %v", n, err)
		}
		left := 0
		for info, err := range m.All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if left++; slices.Contains(keys[1], info.Key) && info.Key != keys[1][7] {
				t.Errorf("session %s of the user is left", info.Key)
			}
		}
		if left != 401 {
			t.Errorf("%d sessions are left", left)
		}
	})
}

// TestEndAllDuringARequest: a request that runs while its session is ended
// stores nothing and gets no cookie.
func TestEndAllDuringARequest(t *testing.T) {
	rdb := miniClient(t)
	g := newGate()
	s := newSite(t, rdb, nil)
	slow := s.slowRotation(g)
	b := s.browser()
	b.visit("/put?uid=7")
	p := g.during(&browser{site: slow, client: b.client}, "/slow?shard=A", func() {
		if n, err := s.sessions.EndAll(t.Context(), "uid", "7"); n != 1 || err != nil {
			t.Errorf("ended %d, %v", n, err)
		}
	})
	if p.setsCookie() || len(s.keys()) != 0 {
		t.Errorf("cookie %v, keys %v", p.setsCookie(), s.keys())
	}
}

func TestAllStops(t *testing.T) {
	m := sessionstore.New(miniClient(t), patient)
	crowd(t, m, 20)
	n := 0
	for _, err := range m.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 5 {
			break
		}
	}
	if n != 5 {
		t.Errorf("yielded %d", n)
	}
}

func TestListRefusesForeignCursors(t *testing.T) {
	m := sessionstore.New(miniClient(t), patient)
	for _, cursor := range []string{"x", "/", "/x", "10.0.0.9:6379/0", "/-1"} {
		if _, _, err := m.List(t.Context(), "", cursor, 10); !errors.Is(err, sessionstore.ErrCursor) {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}

func TestOperatorsWhenRedisFails(t *testing.T) {
	mini, rdb := breakable(t)
	m := sessionstore.New(rdb, patient)
	crowd(t, m, 3)
	for name, call := range map[string]func(ctx context.Context) error{
		"count": func(ctx context.Context) error { _, err := m.CountByShard(ctx); return err },
		"list":  func(ctx context.Context) error { _, _, err := m.List(ctx, "", "", 10); return err },
		"end":   func(ctx context.Context) error { _, err := m.EndAll(ctx, "uid", 1); return err },
		"iterate": func(ctx context.Context) error {
			return m.Iterate(ctx, func(context.Context) error { return nil })
		},
	} {
		mini.SetError("LOADING")
		if err := call(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
		mini.SetError("")
		if err := call(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := m.EndAll(t.Context(), "uid", make(chan int)); err == nil {
		t.Error("looked for a channel")
	}
}
