package sessionstore_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/sessionstore"
)

func TestThirtyFirstRequestsGetOneShard(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		const requests = 30
		var s *site
		var n atomic.Int64
		var loaded sync.WaitGroup
		loaded.Add(requests)
		s = newSite(t, rdb, map[string]http.HandlerFunc{"/first": func(w http.ResponseWriter, r *http.Request) {
			loaded.Done()
			loaded.Wait()
			r.URL.RawQuery = fmt.Sprintf("shard=server_%d", n.Add(1))
			s.claim(w, r)
		}})
		b := s.browser()
		b.visit("/put?uid=7")
		shards := make([]string, requests)
		var wg sync.WaitGroup
		for i := range shards {
			wg.Go(func() {
				p, err := b.try("/first")
				if err != nil || p.status != http.StatusOK {
					t.Errorf("first request: %d %s %v", p.status, p.body, err)
				}
				shards[i] = p.body
			})
		}
		wg.Wait()
		stored := s.hash(b.key())
		for i, shard := range shards {
			if shard != stored["db_server"] || shard != stored["home"] || stored["epoch"] != "1" {
				t.Errorf("request %d went to %q, stored: %v", i, shard, stored)
			}
		}
	})
}

func TestClaimsAtOnce(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		m, token := stored(t, rdb)
		ctxs := make([]context.Context, 30)
		for i := range ctxs {
			ctxs[i] = load(t, m, token)
		}
		stands := make([]sessionstore.Route, len(ctxs))
		var wg sync.WaitGroup
		for i, ctx := range ctxs {
			wg.Go(func() {
				shard := fmt.Sprintf("server_%d", i)
				r, err := m.Claim(ctx, sessionstore.Route{Group: "g", Shard: shard, Home: shard, Epoch: 1})
				if err != nil {
					t.Error(err)
				}
				stands[i] = r
			})
		}
		wg.Wait()
		for i, ctx := range ctxs {
			if stands[i] != stands[0] || stands[i].Epoch != 1 || stands[i].Home != stands[i].Shard {
				t.Errorf("claim %d: %+v, claim 0: %+v", i, stands[i], stands[0])
			}
			if r, ok := m.Route(ctx); !ok || r != stands[0] {
				t.Errorf("Route of request %d is %+v", i, r)
			}
			if got := m.GetString(ctx, "db_server"); got != stands[0].Shard {
				t.Errorf("db_server of request %d is %q", i, got)
			}
		}
	})
}

func TestClaim(t *testing.T) {
	a := sessionstore.Route{Group: "g", Shard: "a", Home: "a", Epoch: 1}
	tests := []struct {
		name, reason string
		setUp        func(t *testing.T, rdb redis.UniversalClient, key string)
		want         sessionstore.Route
		err          error
	}{
		{"unchanged", "the route is the one that was loaded", func(*testing.T, redis.UniversalClient, string) {}, a.Moved("b"), nil},
		{"moved", "another request was faster", func(t *testing.T, rdb redis.UniversalClient, key string) {
			set(t, rdb, key, "db_server", "c", "epoch", "2", "nonce", "other")
		}, a.Moved("c"), nil},
		{"same epoch, another shard", "a failover forgot a change and the number was given twice", func(t *testing.T, rdb redis.UniversalClient, key string) {
			set(t, rdb, key, "db_server", "c", "nonce", "other")
		}, sessionstore.Route{Group: "g", Shard: "c", Home: "a", Epoch: 1}, nil},
		{"same epoch and shard, another writer", "the same, and both went the same way", func(t *testing.T, rdb redis.UniversalClient, key string) {
			set(t, rdb, key, "nonce", "other")
		}, a, nil},
		{"forgotten", "a failover forgot the first assignment: the claim starts over", func(t *testing.T, rdb redis.UniversalClient, key string) {
			if err := rdb.HDel(t.Context(), key, "db_server", "epoch", "home", "group").Err(); err != nil {
				t.Fatal(err)
			}
			set(t, rdb, key, "nonce", "creator")
		}, sessionstore.Route{Group: "g", Shard: "b", Home: "a", Epoch: 1}, nil},
		{"gone", "a logout won", func(t *testing.T, rdb redis.UniversalClient, key string) {
			if err := rdb.Del(t.Context(), key).Err(); err != nil {
				t.Fatal(err)
			}
		}, a, sessionstore.ErrSessionGone},
		{"renewing", "the token is being replaced", func(t *testing.T, rdb redis.UniversalClient, key string) {
			set(t, rdb, key, "renewing", mark(time.Minute))
		}, a, sessionstore.ErrSessionGone},
		{"was renewing", "the renewal failed long ago", func(t *testing.T, rdb redis.UniversalClient, key string) {
			set(t, rdb, key, "renewing", mark(-time.Second))
		}, a.Moved("b"), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
				m, token := stored(t, rdb)
				if _, err := m.Claim(load(t, m, token), a); err != nil {
					t.Fatal(err)
				}
				ctx := load(t, m, token)
				test.setUp(t, rdb, "session:"+m.Key(ctx))
				before := len(fields(t, rdb, "session:"+m.Key(ctx)))
				r, _ := m.Route(ctx)
				got, err := m.Claim(ctx, r.Moved("b"))
				if !errors.Is(err, test.err) || got != test.want {
					t.Errorf("%+v, %v; want %+v, %v: %s", got, err, test.want, test.err, test.reason)
				}
				if errors.Is(err, sessionstore.ErrSessionGone) {
					if m.Key(ctx) != "" {
						t.Error("a session that is gone has a key")
					}
					if _, err := m.Claim(ctx, r.Moved("b")); !errors.Is(err, sessionstore.ErrSessionGone) {
						t.Errorf("claimed again: %v", err)
					}
				}
				if before == 0 && rdb.DBSize(t.Context()).Val() != 0 {
					t.Error("a claim made a key")
				}
			})
		})
	}
}

func TestClaimOutlivesTheClient(t *testing.T) {
	m, token := stored(t, miniClient(t))
	ctx, cancel := context.WithCancel(t.Context())
	ctx, err := m.Load(ctx, token)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := m.Claim(ctx, sessionstore.Route{Shard: "a", Home: "a"}); err != nil {
		t.Errorf("claim after the client left: %v", err)
	}
}

func TestClaimWithoutSession(t *testing.T) {
	m := sessionstore.New(miniClient(t), patient)
	if _, err := m.Claim(t.Context(), sessionstore.Route{Shard: "a"}); !errors.Is(err, sessionstore.ErrNotLoaded) {
		t.Errorf("claim on a bare context: %v", err)
	}
	if _, ok := m.Route(t.Context()); ok || m.Key(t.Context()) != "" {
		t.Error("a bare context has a route or a key")
	}
	ctx := load(t, m, "")
	if _, err := m.Claim(ctx, sessionstore.Route{}); !errors.Is(err, sessionstore.ErrNoShard) {
		t.Errorf("claim of nothing: %v", err)
	}
	if m.Key(ctx) != "" {
		t.Error("a session that is not stored has a key")
	}
}

func TestClaimWhenRedisFails(t *testing.T) {
	mini, rdb := breakable(t)
	m, token := stored(t, rdb)
	ctx := load(t, m, token)
	if _, err := m.Claim(ctx, sessionstore.Route{Shard: "a", Home: "a"}); err != nil {
		t.Fatal(err)
	}
	before, _ := m.Route(ctx)
	mini.SetError("READONLY You can't write against a read only replica.")
	got, err := m.Claim(ctx, before.Moved("b"))
	if err == nil || got != before {
		t.Errorf("%+v, %v", got, err)
	}
	mini.SetError("")
	if got, err := m.Claim(ctx, before.Moved("b")); err != nil || got.Shard != "b" {
		t.Errorf("after Redis is back: %+v, %v", got, err)
	}
}

func TestClaimedRouteFollowsALateRenewal(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		m, token := stored(t, rdb)
		if _, err := m.Claim(load(t, m, token), sessionstore.Route{Group: "east", Shard: "a", Home: "a"}); err != nil {
			t.Fatal(err)
		}
		ctx := load(t, m, token)
		if err := m.RenewToken(ctx); err != nil {
			t.Fatal(err)
		}
		// A login: the token is renewed and then the player's realm assigned.
		if _, err := m.Claim(ctx, sessionstore.Route{Group: "west", Shard: "c", Home: "c"}); err != nil {
			t.Fatal(err)
		}
		renewed, _, err := m.Commit(ctx)
		if err != nil {
			t.Fatal(err)
		}
		r, ok := m.Route(load(t, m, renewed))
		if want := (sessionstore.Route{Group: "west", Shard: "c", Home: "c", Epoch: 2}); !ok || r != want {
			t.Errorf("route is %+v, want %+v", r, want)
		}
	})
}

func TestMergeSessionMovesValuesButNoRoute(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		m, token := stored(t, rdb)
		if _, err := m.Claim(load(t, m, token), sessionstore.Route{Shard: "a", Home: "a"}); err != nil {
			t.Fatal(err)
		}
		ctx := load(t, m, "")
		if _, err := m.Claim(ctx, sessionstore.Route{Shard: "b", Home: "b"}); err != nil {
			t.Fatal(err)
		}
		if err := m.MergeSession(ctx, token); err != nil {
			t.Fatal(err)
		}
		if got := m.GetString(ctx, "db_server"); got != "b" {
			t.Errorf("db_server is %q", got)
		}
		merged, _, err := m.Commit(ctx)
		if err != nil {
			t.Fatal(err)
		}
		again := load(t, m, merged)
		if r, _ := m.Route(again); r.Shard != "b" || m.GetString(again, "uid") != "7" {
			t.Errorf("merged session: %+v, uid %q", r, m.GetString(again, "uid"))
		}
		if m.Status(load(t, m, token)) != scs.Unmodified || rdb.DBSize(t.Context()).Val() != 1 {
			t.Error("the source still exists")
		}
	})
}

func TestHashedTokens(t *testing.T) {
	rdb := miniClient(t)
	m := sessionstore.New(rdb, patient)
	m.HashTokenInStore = true
	ctx := load(t, m, "")
	m.Put(ctx, "uid", "7")
	token, _, err := m.Commit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ctx = load(t, m, token)
	if _, err := m.Claim(ctx, sessionstore.Route{Shard: "a", Home: "a"}); err != nil {
		t.Fatal(err)
	}
	if got := rdb.HGet(t.Context(), "session:"+m.Key(ctx), "db_server").Val(); got != "a" {
		t.Errorf("stored shard is %q", got)
	}
}

// stored returns a manager and the token of a stored session without a route.
func stored(t *testing.T, rdb redis.UniversalClient) (m *sessionstore.Manager, token string) {
	t.Helper()
	m = sessionstore.New(rdb, patient)
	ctx := load(t, m, "")
	m.Put(ctx, "uid", "7")
	token, _, err := m.Commit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return m, token
}

func load(t *testing.T, m *sessionstore.Manager, token string) context.Context {
	t.Helper()
	ctx, err := m.Load(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

func set(t *testing.T, rdb redis.UniversalClient, key string, fields ...any) {
	t.Helper()
	if err := rdb.HSet(t.Context(), key, fields...).Err(); err != nil {
		t.Fatal(err)
	}
}

// mark is how a renewal marks the session that it takes, to end after d.
func mark(d time.Duration) string {
	return fmt.Sprintf("somebody %d", time.Now().Add(d).UnixMilli())
}

func fields(t *testing.T, rdb redis.UniversalClient, key string) map[string]string {
	t.Helper()
	m, err := rdb.HGetAll(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	return m
}
