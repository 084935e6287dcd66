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

// rival is a session manager in a benchmark.
type rival struct {
	sessions    *scs.SessionManager
	loadAndSave func(http.Handler) http.Handler
}

func ours(rdb *redis.Client, idle time.Duration) rival {
	m := sessionstore.New(rdb, sessionstore.Config{})
	m.IdleTimeout = idle
	return rival{m.SessionManager, m.LoadAndSave}
}

func stock(rdb *redis.Client, idle time.Duration) rival {
	sessions := scs.New()
	sessions.Store = stockStore{rdb}
	sessions.IdleTimeout = idle
	return rival{sessions, sessions.LoadAndSave}
}

var idleTimeouts = map[string]time.Duration{"off": 0, "on": time.Hour}

// BenchmarkLoadAndSave measures a steady request, which reads one value of its
// session, against a real Redis, beside scs with gob and a store of the usual
// kind.
func BenchmarkLoadAndSave(b *testing.B) {
	server := lab.Redis(b)
	for _, n := range sessionSizes {
		for word, idle := range idleTimeouts {
			for name, manager := range map[string]func(*redis.Client, time.Duration) rival{"sessionstore": ours, "scs": stock} {
				b.Run(fmt.Sprintf("%d values/idle timeout %s/%s", n, word, name), func(b *testing.B) {
					rdb := benchClient(b, server)
					request := steady(b, manager(rdb, idle), n)
					count := new(counter)
					rdb.AddHook(count)
					b.ReportAllocs()
					for b.Loop() {
						request()
					}
					trips, _ := count.reset()
					b.ReportMetric(float64(trips)/float64(b.N), "roundtrips/op")
				})
			}
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

// steady logs in a player whose session has n values, and returns a request of
// that player.
func steady(b *testing.B, m rival, n int) (request func()) {
	h := m.loadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/login" {
			for key, value := range sessionOf(n) {
				m.sessions.Put(r.Context(), key, value)
			}
			return
		}
		if m.sessions.GetString(r.Context(), "name") == "" {
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
	return func() { h.ServeHTTP(sink{}, req) }
}

// sink is a http.ResponseWriter that costs as good as nothing, so that what is
// measured is the session.
type sink struct{}

func (sink) Header() http.Header         { return http.Header{} }
func (sink) Write(b []byte) (int, error) { return len(b), nil }
func (sink) WriteHeader(int)             {}
func (sink) Flush()                      {}
