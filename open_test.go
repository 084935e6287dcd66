package shardhop_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop"
	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/sessionstore"
	"github.com/shardhop/shardhop/shardrouter"
)

// downDSN names a server that nobody runs.
const downDSN = "app:hunter2@tcp(127.0.0.1:1)/game"

func TestOpenNamesEveryProblem(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { client.Close() })
	good := shardrouter.Config{Shards: []shardrouter.Shard{{Name: "server_1", DSN: downDSN}}}
	tests := []struct {
		name    string
		cfg     shardhop.Config
		reasons []string
	}{
		{
			"nothing is set",
			shardhop.Config{},
			[]string{"RedisURL", "no shard"},
		},
		{
			"one of each kind at once",
			shardhop.Config{
				RedisURL:            "redis://:hunter2@",
				RedisSentinelMaster: "game",
				SessionLifetime:     -1,
				SessionIdleTimeout:  -1,
				Router:              shardrouter.Config{Shards: []shardrouter.Shard{{Name: "Server 1", DSN: downDSN}}},
				Sessions:            sessionstore.Config{Timeout: -1, RetryAfter: -1},
				Middleware:          middleware.Config{Router: new(shardrouter.Router), ClaimTimeout: -1, RetryAfter: -1, MaxRuns: -1, ReplayBuffer: -1},
			},
			[]string{
				"RedisURL", "sentinel", "SessionLifetime", "SessionIdleTimeout", "Name", "Middleware.Router",
				"Sessions.Timeout", "Sessions.RetryAfter", "Middleware.ClaimTimeout", "Middleware.RetryAfter",
				"Middleware.MaxRuns", "Middleware.ReplayBuffer",
			},
		},
		{
			"two clients",
			shardhop.Config{Redis: client, RedisURL: "redis://localhost", Router: good},
			[]string{"both Redis and RedisURL"},
		},
		{
			"a player who waits for a shard would be logged out",
			shardhop.Config{Redis: client, SessionIdleTimeout: 30 * time.Second, Router: good},
			[]string{"SESSION_IDLE_TIMEOUT) 30s", "SHARD_HOLD_TIMEOUT) 1m0s"},
		},
		{
			"the middleware would panic",
			shardhop.Config{Redis: client, Router: good, Middleware: middleware.Config{Group: "emea"}},
			[]string{`"emea"`, "default"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			hop, err := shardhop.Open(t.Context(), tt.cfg)
			if err == nil {
				t.Fatal("opened", hop.Close())
			}
			for _, reason := range tt.reasons {
				if !strings.Contains(err.Error(), reason) {
					t.Errorf("the error does not name %q: %v", reason, err)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a password: %v", err)
			}
		})
	}
}

func TestOpenWithTheContextDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := shardhop.Open(ctx, shardhop.Config{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestCloseLeavesTheCallersClientOpen(t *testing.T) {
	rdb := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: rdb.Addr()})
	t.Cleanup(func() { client.Close() })
	hop := open(t, shardhop.Config{
		Redis:  client,
		Router: shardrouter.Config{Shards: []shardrouter.Shard{{Name: "server_1", DSN: downDSN}}},
	})
	for range 2 { // Close is idempotent
		if err := hop.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the caller's client: %v", err)
	}
}

func TestCloseClosesItsOwnClient(t *testing.T) {
	rdb := miniredis.RunT(t)
	hop := open(t, shardhop.Config{
		RedisURL: "redis://" + rdb.Addr(),
		Router:   shardrouter.Config{Shards: []shardrouter.Shard{{Name: "server_1", DSN: downDSN}}},
	})
	if err := hop.Close(); err != nil {
		t.Fatal(err)
	}
	if err := hop.Redis.Ping(t.Context()).Err(); !errors.Is(err, redis.ErrClosed) {
		t.Errorf("error %v, want %v", err, redis.ErrClosed)
	}
}

func TestSessionSettings(t *testing.T) {
	rdb := miniredis.RunT(t)
	router := shardrouter.Config{Shards: []shardrouter.Shard{{Name: "server_1", DSN: downDSN}}}
	defaults := open(t, shardhop.Config{RedisURL: "redis://" + rdb.Addr(), Router: router}).Sessions
	if defaults.Lifetime != 24*time.Hour || defaults.IdleTimeout != 0 || defaults.Cookie.Secure || defaults.Cookie.Name != "session" || !defaults.Cookie.HttpOnly {
		t.Errorf("defaults: lifetime %v, idle timeout %v, cookie %+v", defaults.Lifetime, defaults.IdleTimeout, defaults.Cookie)
	}
	set := open(t, shardhop.Config{
		RedisURL: "redis://" + rdb.Addr(), Router: router,
		SessionLifetime: time.Hour, SessionIdleTimeout: 5 * time.Minute, CookieSecure: true,
	}).Sessions
	if set.Lifetime != time.Hour || set.IdleTimeout != 5*time.Minute || !set.Cookie.Secure {
		t.Errorf("set: lifetime %v, idle timeout %v, cookie %+v", set.Lifetime, set.IdleTimeout, set.Cookie)
	}
}

// open opens a hop that ends with the test.
func open(t *testing.T, cfg shardhop.Config) *shardhop.Hop {
	t.Helper()
	hop, err := shardhop.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hop.Close() })
	return hop
}
