package middleware_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/shardhop/shardhop/middleware"
)

// TestReplayReports holds that a refusal which the client never sees is not
// reported as one.
func TestReplayReports(t *testing.T) {
	for _, lose := range []int{1, 2} {
		refused, runs := 0, 0
		tw := failing(t, nil)
		tw.cfg.Observer.Refused = func(error) { refused++ }
		rec := httptest.NewRecorder()
		tw.handler(func(w http.ResponseWriter, r *http.Request) {
			if runs++; runs <= lose {
				tw.cut()
				middleware.WriteError(w, r, errors.New("lost"))
			}
		}).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
		if runs != 2 || refused != lose-1 || strings.Count(tw.log.String(), "request refused") != lose-1 {
			t.Errorf("%d runs lose: %d runs, %d refused, log %s", lose, runs, refused, &tw.log)
		}
	}
}

// TestReplayErrorHandler holds that an application's own page which is no
// failure stands.
func TestReplayErrorHandler(t *testing.T) {
	refused, runs := 0, 0
	tw := failing(t, nil)
	tw.cfg.Observer.Refused = func(error) { refused++ }
	tw.cfg.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { _, _ = io.WriteString(w, "sorry") }
	rec := httptest.NewRecorder()
	tw.handler(func(w http.ResponseWriter, r *http.Request) {
		runs++
		tw.cut()
		middleware.WriteError(w, r, errors.New("lost"))
	}).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
	if runs != 1 || refused != 1 || rec.Body.String() != "sorry" {
		t.Errorf("%d runs, %d refused, body %q", runs, refused, rec.Body)
	}
}

// TestReplayPanic holds that a panic goes on, with what was written before it,
// and that nothing runs again.
func TestReplayPanic(t *testing.T) {
	for _, value := range []any{http.ErrAbortHandler, errors.New("invalid connection")} {
		for _, written := range []bool{false, true} {
			tw := failing(t, func(w http.ResponseWriter, _ *http.Request) {
				if written {
					w.WriteHeader(http.StatusBadGateway)
				}
				panic(value)
			})
			rec := httptest.NewRecorder()
			func() {
				defer func() {
					if got := recover(); got != value {
						t.Errorf("recovered %v, want %v", got, value)
					}
				}()
				tw.handler(tw.ServeHTTP).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
			}()
			if tw.runs != 1 || written != (rec.Code == http.StatusBadGateway) || rec.Header().Get("X-Shard") != "a" {
				t.Errorf("%d runs, status %d, header %v", tw.runs, rec.Code, rec.Header())
			}
		}
	}
}

// TestReplayLeftovers holds that the first run has ended, with its context and
// its lease, before the second begins.
func TestReplayLeftovers(t *testing.T) {
	var first context.Context
	tw := failing(t, func(_ http.ResponseWriter, r *http.Request) { first = r.Context() })
	rec := httptest.NewRecorder()
	tw.handler(func(w http.ResponseWriter, r *http.Request) {
		if first != nil {
			if first.Err() == nil || tw.fleet.out != 1 {
				t.Errorf("the first run's context ended with %v, %d leases are out", first.Err(), tw.fleet.out)
			}
			if _, err := middleware.Acquire(first); !errors.Is(err, middleware.ErrRequestEnded) {
				t.Errorf("the first run takes a connection: %v", err)
			}
		}
		tw.ServeHTTP(w, r)
	}).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
	tw.want(t, 2, http.StatusOK, rec.Code)
}

// TestReplayLazy holds the same where the handler takes its connection.
func TestReplayLazy(t *testing.T) {
	tw := failing(t, nil)
	tw.cfg.Lazy = true
	rec := httptest.NewRecorder()
	tw.handler(func(w http.ResponseWriter, r *http.Request) {
		if _, err := middleware.Acquire(r.Context()); err != nil {
			t.Error(err)
		}
		tw.ServeHTTP(w, r)
		middleware.Release(r.Context())
	}).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
	tw.want(t, 2, http.StatusOK, rec.Code)
}

// TestReplayNested holds that of two mounts, one within the other, neither runs
// anything again.
func TestReplayNested(t *testing.T) {
	tw := failing(t, nil)
	inner := middleware.NewOn(tw.cfg, tw.fleet, tw.fleet)(tw)
	rec := httptest.NewRecorder()
	tw.handler(func(w http.ResponseWriter, r *http.Request) {
		tw.cut() // the outer connection too
		inner.ServeHTTP(w, r)
	}).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
	tw.want(t, 1, http.StatusServiceUnavailable, rec.Code)
}

// TestNoReplayWithoutChanged holds that a store which cannot tell whether the
// session changed gets no replay.
func TestNoReplayWithoutChanged(t *testing.T) {
	tw := failing(t, nil)
	tw.cfg.Sessions = struct{ middleware.Sessions }{tw.sessions}
	rec := tw.send(httptest.NewRequest(http.MethodGet, "/", nil))
	tw.want(t, 1, http.StatusServiceUnavailable, rec.Code)
}
