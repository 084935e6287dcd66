package middleware_test

import (
	"context"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/shardhop/shardhop/middleware"
)

// still is router, store and lease in one, in which nothing changes and
// nothing costs anything.
type still struct{ middleware.Route }

func (s *still) Groups() []string                                          { return []string{"g"} }
func (s *still) GroupOf(string) (string, bool)                             { return "g", true }
func (s *still) Key(context.Context) string                                { return "" }
func (s *still) Conn() *sql.Conn                                           { return nil }
func (s *still) Shard() string                                             { return s.Route.Shard }
func (s *still) ReleaseAfter(_ context.Context, cancel context.CancelFunc) { cancel() }
func (s *still) Detour() bool                                              { return false }
func (s *still) Alive() bool                                               { return true }
func (s *still) Lost() bool                                                { return false }
func (s *still) OnlyRead(context.Context) bool                             { return true }
func (s *still) Changed(context.Context) bool                              { return false }
func (s *still) Returned() bool                                            { return false }
func (s *still) Release()                                                  {}
func (s *still) Acquire(context.Context, string) (middleware.Lease, error) { return s, nil }

type stillStore struct{ *still }

func (s stillStore) Route(context.Context) (middleware.Route, bool) { return s.still.Route, true }
func (s stillStore) Claim(_ context.Context, rt middleware.Route) (middleware.Route, error) {
	return rt, nil
}

func (s *still) Lease(context.Context, middleware.Route, string) (middleware.Lease, error) {
	return s, nil
}

// BenchmarkOwnCost is what the middleware itself adds to a request, on a
// router and a store that cost nothing.
func BenchmarkOwnCost(b *testing.B) {
	s := &still{home("g", "a", 1)}
	h := middleware.NewOn(middleware.Config{Sessions: stillStore{s}, ShardHeader: "X-Shard"}, s, s)(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	req := httptest.NewRequest(http.MethodGet, "/", nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(full{httptest.NewRecorder()}, req)
	}
}

type full struct{ *httptest.ResponseRecorder }
