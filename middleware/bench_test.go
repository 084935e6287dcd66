package middleware_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/sessionstore"
	"github.com/shardhop/shardhop/shardrouter"
)

// trips counts round trips to Redis.
type trips struct{ n atomic.Int64 }

func (*trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

func (c *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmds)
	}
}

// BenchmarkSteadyPath is a request of a player whose session and shard are at
// rest, on a real Redis and a real MariaDB. What the second line costs beyond
// the first is the middleware, the router and the pool together.
func BenchmarkSteadyPath(b *testing.B) {
	var count trips
	client := redis.NewClient(&redis.Options{Addr: lab.Redis(b).Addr(), ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()
	client.AddHook(&count)
	sessions := sessionstore.New(client, sessionstore.Config{})
	router, err := shardrouter.New(shardrouter.Config{
		Shards: []shardrouter.Shard{{Name: "a", DSN: shardrouter.DSN(lab.MariaDB(b).DSN())}},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = router.Close() }()
	lend := middleware.New(middleware.Config{Sessions: sessions, Router: router, ShardHeader: "X-Shard"})

	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	login := httptest.NewRecorder()
	sessions.LoadAndSave(lend(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		sessions.Put(r.Context(), "name", "ada")
	}))).ServeHTTP(login, httptest.NewRequest(http.MethodGet, "/", nil))

	for name, h := range map[string]http.Handler{
		"LoadAndSave":            sessions.LoadAndSave(handler),
		"LoadAndSave+middleware": sessions.LoadAndSave(lend(handler)),
	} {
		b.Run(name, func(b *testing.B) {
			req := httptest.NewRequest(http.MethodGet, "/", nil)
			req.AddCookie(login.Result().Cookies()[0])
			before := count.n.Load()
			b.ReportAllocs()
			for b.Loop() {
				rec := httptest.NewRecorder()
				if h.ServeHTTP(rec, req); rec.Code != http.StatusNoContent {
					b.Fatalf("status %d: %s", rec.Code, rec.Body)
				}
			}
			b.ReportMetric(float64(count.n.Load()-before)/float64(b.N), "redis-trips/op")
		})
	}
}
