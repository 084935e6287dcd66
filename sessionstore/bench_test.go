package sessionstore_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/sessionstore"
)

// stockStore saves a session as scs's own Redis stores do: one string.
type stockStore struct{ rdb *redis.Client }

func (s stockStore) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	b, err := s.rdb.Get(ctx, "scs:"+token).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, false, nil
	}
	return b, err == nil, err
}

func (s stockStore) CommitCtx(ctx context.Context, token string, b []byte, expiry time.Time) error {
	return s.rdb.Set(ctx, "scs:"+token, b, time.Until(expiry)).Err()
}

func (s stockStore) DeleteCtx(ctx context.Context, token string) error {
	return s.rdb.Del(ctx, "scs:"+token).Err()
}

func (s stockStore) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

func (s stockStore) Commit(token string, b []byte, expiry time.Time) error {
	return s.CommitCtx(context.Background(), token, b, expiry)
}

func (s stockStore) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }

// BenchmarkLoadAndSave measures a steady request, which reads one value of its
// session, against a real Redis, beside scs with gob and a store of the usual
// kind. docs/sessions.md has the figures.
func BenchmarkLoadAndSave(b *testing.B) {
	server := lab.Redis(b)
	for _, n := range sessionSizes {
		for _, idle := range []time.Duration{0, time.Hour} {
			name := fmt.Sprintf("%d values/idle timeout off/", n)
			if idle > 0 {
				name = fmt.Sprintf("%d values/idle timeout on/", n)
			}
			b.Run(name+"sessionstore", func(b *testing.B) {
				rdb := benchClient(b, server)
				m := sessionstore.New(rdb, sessionstore.Config{})
				m.IdleTimeout = idle
				benchSteady(b, rdb, m.SessionManager, m.LoadAndSave, n)
			})
			b.Run(name+"scs", func(b *testing.B) {
				rdb := benchClient(b, server)
				sessions := scs.New()
				sessions.Store = stockStore{rdb}
				sessions.IdleTimeout = idle
				benchSteady(b, rdb, sessions, sessions.LoadAndSave, n)
			})
		}
	}
}

// benchClient returns a client of an empty Redis.
func benchClient(b *testing.B, server *lab.RedisServer) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	b.Cleanup(func() { _ = rdb.Close() })
	if err := rdb.FlushAll(b.Context()).Err(); err != nil {
		b.Fatal(err)
	}
	return rdb
}

func benchSteady(b *testing.B, rdb *redis.Client, sessions *scs.SessionManager, loadAndSave func(http.Handler) http.Handler, n int) {
	h := loadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/login" {
			for key, value := range sessionOf(n) {
				sessions.Put(r.Context(), key, value)
			}
			return
		}
		if sessions.GetString(r.Context(), "name") == "" {
			b.Error("no session")
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/login", nil))
	req := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/me", nil)
	for _, cookie := range rec.Result().Cookies() {
		req.AddCookie(cookie)
	}
	key, err := rdb.RandomKey(b.Context()).Result()
	if err != nil {
		b.Fatal(err)
	}
	size, err := rdb.MemoryUsage(b.Context(), key).Result()
	if err != nil {
		b.Fatal(err)
	}
	count := new(counter)
	rdb.AddHook(count)
	b.ReportAllocs()
	for b.Loop() {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
	}
	trips, _ := count.reset()
	b.ReportMetric(float64(trips)/float64(b.N), "roundtrips/op")
	b.ReportMetric(float64(size), "bytes-in-redis")
}
