package middleware_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/shardhop/shardhop/middleware"
)

// TestMayReplay holds that every single reason is enough not to run again.
func TestMayReplay(t *testing.T) {
	good := middleware.Run{Most: 2, Status: http.StatusServiceUnavailable, Lost: true, OnlyRead: true}
	tests := []struct {
		change func(r *middleware.Run)
		want   bool
		reason string
	}{
		{func(*middleware.Run) {}, true, "it failed because of its connection, and left no trace"},
		{func(r *middleware.Run) { r.Status = http.StatusInternalServerError }, true, "any failure will do"},
		{func(r *middleware.Run) { r.Before, r.Most = 1, 3 }, true, "one run is left"},
		{func(r *middleware.Run) { r.Status = http.StatusOK }, false, "it was served"},
		{func(r *middleware.Run) { r.Status = http.StatusNotFound }, false, "the client is to blame"},
		{func(r *middleware.Run) { r.Status = 499 }, false, "the client is to blame"},
		{func(r *middleware.Run) { r.Lost = false }, false, "the status alone is no evidence"},
		{func(r *middleware.Run) { r.OnlyRead = false }, false, "what it wrote may stand"},
		{func(r *middleware.Run) { r.Steered = true }, false, "its route was moved on purpose"},
		{func(r *middleware.Run) { r.Changed = true }, false, "the second run would find another session"},
		{func(r *middleware.Run) { r.Left = true }, false, "the client has seen something"},
		{func(r *middleware.Run) { r.Over = true }, false, "nobody waits for the answer"},
		{func(r *middleware.Run) { r.Before = 1 }, false, "it ran twice"},
		{func(r *middleware.Run) { r.Most = 1 }, false, "replay is off"},
	}
	for _, tt := range tests {
		r := good
		tt.change(&r)
		if got := middleware.MayReplay(r); got != tt.want {
			t.Errorf("%+v: got %v, but %s", r, got, tt.reason)
		}
	}
}

// twice is a handler whose first runs lose their connection.
type twice struct {
	*rig
	lose  int // how many runs lose it; 0 counts as one
	first func(w http.ResponseWriter, r *http.Request)

	mu   sync.Mutex
	runs int
}

// failing returns a rig on which a session is at home on a, and a handler on it
// that runs first, loses its connection and answers 503, and then does well.
func failing(t testing.TB, first func(w http.ResponseWriter, r *http.Request)) *twice {
	tw := &twice{rig: newRig(t, "g/a", "g/b", "g/c"), first: first}
	tw.sessions.stored = home("g", "a", 1)
	return tw
}

func (tw *twice) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tw.mu.Lock()
	tw.runs++
	loses := tw.runs <= max(tw.lose, 1)
	tw.mu.Unlock()
	if !loses {
		w.Header().Set("X-Run", "last")
		_, _ = io.WriteString(w, "served by "+middleware.Shard(r.Context()))
		return
	}
	tw.cut()
	if tw.first != nil {
		tw.first(w, r)
	}
	w.Header().Set("X-Run", "first")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, "failed")
}

// cut ends the connection of the last lease, and the shard with it.
func (tw *twice) cut() {
	tw.fleet.mu.Lock()
	defer tw.fleet.mu.Unlock()
	l := tw.fleet.last
	l.dead.Store(true)
	l.lost.Store(true)
	tw.fleet.down[l.shard] = true
}

// send sends one request through the middleware.
func (tw *twice) send(req *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	tw.handler(tw.ServeHTTP).ServeHTTP(rec, req)
	return rec
}

// want holds that the handler ran so often, and how the request ended.
func (tw *twice) want(t *testing.T, runs, status int, got int) {
	t.Helper()
	if tw.runs != runs || got != status {
		t.Errorf("%d runs and status %d, want %d and %d; log: %s", tw.runs, got, runs, status, &tw.log)
	}
}

// TestReplay holds that a safe request whose connection went is served by the
// next shard, and that nothing of the first run shows.
func TestReplay(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
		var heard []string
		tw := failing(t, func(w http.ResponseWriter, r *http.Request) {
			http.SetCookie(w, &http.Cookie{Name: "first", Value: "1"})
			w.Header().Add("Outer", "changed")
			w.Header().Del("Gone")
			if middleware.Rotated(r.Context()) {
				t.Error("the first run is rotated")
			}
		})
		tw.cfg.Observer.Replayed = func(from, to string) { heard = append(heard, from+" "+to) }
		rec := httptest.NewRecorder()
		rec.Header().Set("Outer", "as it was")
		rec.Header().Set("Gone", "no")
		tw.handler(func(w http.ResponseWriter, r *http.Request) {
			if tw.runs == 1 && (!middleware.Rotated(r.Context()) || middleware.Home(r.Context()) != "a") {
				t.Error("the second run is not rotated")
			}
			tw.ServeHTTP(w, r)
		}).ServeHTTP(rec, httptest.NewRequest(method, "/", nil))
		tw.want(t, 2, http.StatusOK, rec.Code)
		h := rec.Header()
		if rec.Body.String() != "served by b" || h.Get("X-Shard") != "b" || h.Get("X-Run") != "last" {
			t.Errorf("%s: body %q, header %v", method, rec.Body, h)
		}
		if h.Get("Set-Cookie") != "" || len(h.Values("Outer")) != 1 || h.Get("Gone") != "no" {
			t.Errorf("%s: header %v", method, h)
		}
		if got := tw.sessions.route(); got.Shard != "b" || got.Home != "a" || got.Epoch != 2 {
			t.Errorf("%s: the session has the route %v", method, got)
		}
		if len(heard) != 1 || heard[0] != "a b" || !strings.Contains(tw.log.String(), "request run again") {
			t.Errorf("%s: heard %q, log %s", method, heard, &tw.log)
		}
	}
}

// TestReplayBounds holds that a request runs as often as configured.
func TestReplayBounds(t *testing.T) {
	for _, tt := range []struct{ most, lose, runs, status int }{
		{0, 1, 2, http.StatusOK},
		{0, 2, 2, http.StatusServiceUnavailable},
		{1, 1, 1, http.StatusServiceUnavailable},
		{3, 2, 3, http.StatusOK},
	} {
		tw := failing(t, nil)
		tw.cfg.MaxRuns, tw.lose = tt.most, tt.lose
		rec := tw.send(httptest.NewRequest(http.MethodGet, "/", nil))
		tw.want(t, tt.runs, tt.status, rec.Code)
		if tt.status != http.StatusOK && rec.Body.String() != "failed" {
			t.Errorf("body %q", rec.Body)
		}
	}
}

// TestNoReplay holds that whatever could show makes the first answer stand.
func TestNoReplay(t *testing.T) {
	do := func(fn func(tw *twice, w http.ResponseWriter, r *http.Request)) func(t *testing.T) (*twice, *http.Request) {
		return func(t *testing.T) (*twice, *http.Request) {
			var tw *twice
			tw = failing(t, func(w http.ResponseWriter, r *http.Request) { fn(tw, w, r) })
			return tw, httptest.NewRequest(http.MethodGet, "/", nil)
		}
	}
	request := func(req *http.Request) func(t *testing.T) (*twice, *http.Request) {
		return func(t *testing.T) (*twice, *http.Request) { return failing(t, nil), req }
	}
	tests := map[string]func(t *testing.T) (*twice, *http.Request){
		"POST":          request(httptest.NewRequest(http.MethodPost, "/", nil)),
		"PUT":           request(httptest.NewRequest(http.MethodPut, "/", nil)),
		"DELETE":        request(httptest.NewRequest(http.MethodDelete, "/", nil)),
		"GET with body": request(httptest.NewRequest(http.MethodGet, "/", strings.NewReader("x"))),
		"GET with a body of unknown length": request(
			httptest.NewRequest(http.MethodGet, "/", io.MultiReader(strings.NewReader("x")))),
		"connection not lost": do(func(tw *twice, _ http.ResponseWriter, _ *http.Request) {
			tw.fleet.last.lost.Store(false) // such as by the end of a statement's context
		}),
		"wrote":           do(func(tw *twice, _ http.ResponseWriter, _ *http.Request) { tw.fleet.wrote = true }),
		"session changed": do(func(tw *twice, _ http.ResponseWriter, _ *http.Request) { tw.sessions.changed = true }),
		"assigned": do(func(_ *twice, _ http.ResponseWriter, r *http.Request) {
			_ = middleware.Assign(r.Context(), "g")
		}),
		"move failed": do(func(_ *twice, _ http.ResponseWriter, r *http.Request) {
			_ = middleware.Move(r.Context(), "a")
		}),
		"another connection was found": do(func(_ *twice, _ http.ResponseWriter, r *http.Request) {
			if _, err := middleware.Acquire(r.Context()); err != nil {
				panic(err)
			}
		}),
		"no other connection was found": do(func(tw *twice, _ http.ResponseWriter, r *http.Request) {
			tw.fleet.down["b"], tw.fleet.down["c"] = true, true
			if _, err := middleware.Acquire(r.Context()); err == nil {
				panic("a connection")
			}
			tw.fleet.down["b"], tw.fleet.down["c"] = false, false
		}),
		"event stream": do(func(_ *twice, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
		}),
		"flush after the status": do(func(_ *twice, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			w.(http.Flusher).Flush()
		}),
		"overflow": do(func(_ *twice, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write(make([]byte, 64<<10))
			_, _ = w.Write([]byte{0})
		}),
		"client gone": func(t *testing.T) (*twice, *http.Request) {
			ctx, leave := context.WithCancel(t.Context())
			tw := failing(t, func(http.ResponseWriter, *http.Request) { leave() })
			return tw, httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx)
		},
		"client gone after the status": func(t *testing.T) (*twice, *http.Request) {
			ctx, leave := context.WithCancel(t.Context())
			tw := failing(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusServiceUnavailable)
				leave()
			})
			return tw, httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx)
		},
		"wrote after the status": do(func(tw *twice, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			tw.fleet.wrote = true
		}),
	}
	for name, setup := range tests {
		t.Run(name, func(t *testing.T) {
			tw, req := setup(t)
			rec := tw.send(req)
			tw.want(t, 1, http.StatusServiceUnavailable, rec.Code)
			if !strings.HasSuffix(rec.Body.String(), "failed") {
				t.Errorf("body %q", rec.Body)
			}
		})
	}
}

// TestNoReplayOfSuccess holds that an answer which has begun well stands, and
// goes out as it is written.
func TestNoReplayOfSuccess(t *testing.T) {
	for name, begin := range map[string]func(w http.ResponseWriter){
		"status": func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) },
		"write":  func(w http.ResponseWriter) { _, _ = io.WriteString(w, "half") },
		"flush":  func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
	} {
		tw := failing(t, func(w http.ResponseWriter, _ *http.Request) { begin(w) })
		rec := tw.send(httptest.NewRequest(http.MethodGet, "/", nil))
		if tw.runs != 1 || rec.Code != http.StatusOK || !strings.HasSuffix(rec.Body.String(), "failed") {
			t.Errorf("%s: %d runs, status %d, body %q", name, tw.runs, rec.Code, rec.Body)
		}
	}
}

// TestReplayBuffer holds that a body which just fits is held back, whichever
// way it is written.
func TestReplayBuffer(t *testing.T) {
	for name, write := range map[string]func(w http.ResponseWriter, b []byte){
		"Write":       func(w http.ResponseWriter, b []byte) { _, _ = w.Write(b) },
		"WriteString": func(w http.ResponseWriter, b []byte) { _, _ = io.WriteString(w, strings.Repeat("x", len(b))) },
	} {
		for size, runs := range map[int]int{100: 2, 101: 1} {
			tw := failing(t, nil)
			tw.cfg.ReplayBuffer = 100
			var n int
			rec := httptest.NewRecorder()
			tw.handler(func(w http.ResponseWriter, _ *http.Request) {
				n++
				tw.cut()
				w.WriteHeader(http.StatusInternalServerError)
				for part := range bytes.SplitSeq(bytes.Repeat([]byte("x"), size), nil) {
					write(w, part)
				}
			}).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
			if n != runs || rec.Body.Len() != size {
				t.Errorf("%s of %d bytes: %d runs, want %d; the client got %d bytes", name, size, n, runs, rec.Body.Len())
			}
		}
	}
}

// TestReplayFindsNothing holds that the handler's own answer goes out when the
// second run cannot have a connection.
func TestReplayFindsNothing(t *testing.T) {
	tw := failing(t, nil)
	tw.fleet.down["b"], tw.fleet.down["c"] = true, true
	rec := tw.send(httptest.NewRequest(http.MethodGet, "/", nil))
	tw.want(t, 1, http.StatusServiceUnavailable, rec.Code)
	if rec.Body.String() != "failed" || rec.Header().Get("X-Run") != "first" || rec.Header().Get("X-Shard") != "a" {
		t.Errorf("body %q, header %v", rec.Body, rec.Header())
	}
}
