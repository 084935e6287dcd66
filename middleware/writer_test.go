package middleware_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"github.com/shardhop/shardhop/middleware"
)

// serve runs h behind the middleware on a real socket.
func (rg *rig) serve(h http.HandlerFunc) *httptest.Server {
	srv := httptest.NewServer(rg.handler(h))
	rg.t.Cleanup(srv.Close)
	return srv
}

func fetch(t *testing.T, url string) (http.Header, string) {
	t.Helper()
	_, header, body := visit(t, http.DefaultClient, url)
	return header, body
}

// TestShardHeader holds that whatever sends the header first names the shard.
func TestShardHeader(t *testing.T) {
	tests := map[string]http.HandlerFunc{
		"nothing":     func(http.ResponseWriter, *http.Request) {},
		"WriteHeader": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) },
		"Write":       func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) },
		"WriteString": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") },
		"ReadFrom":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, strings.NewReader("x")) },
		"Flush":       func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
		"FlushError":  func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() },
	}
	for name, h := range tests {
		rg := newRig(t, "g/a", "g/b")
		srv := rg.serve(func(w http.ResponseWriter, r *http.Request) {
			if err := middleware.Move(r.Context(), "b"); err != nil {
				t.Error(err)
			}
			h(w, r)
		})
		if h, _ := fetch(t, srv.URL); h.Get("X-Shard") != "b" {
			t.Errorf("%s: X-Shard is %q, want the shard that served last", name, h.Get("X-Shard"))
		}
	}
}

// TestInterimAnswers holds that a 1xx is not taken for the answer.
func TestInterimAnswers(t *testing.T) {
	rg := newRig(t, "g/a", "g/b")
	srv := rg.serve(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusEarlyHints)
		if middleware.Conn(r.Context()) == nil {
			t.Error("the early hint cost the connection")
		}
		if err := middleware.Move(r.Context(), "b"); err != nil {
			t.Error(err)
		}
	})
	hints := 0
	trace := &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error {
		hints++
		return nil
	}}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if hints != 1 || res.StatusCode != http.StatusOK || res.Header.Get("X-Shard") != "b" {
		t.Errorf("%d hints, status %d, X-Shard %q", hints, res.StatusCode, res.Header.Get("X-Shard"))
	}
}

// TestEventStream holds that a stream gives its connection back when it
// begins, and lives on.
func TestEventStream(t *testing.T) {
	tests := map[string]struct {
		contentType string
		begin       func(w http.ResponseWriter)
		given       bool
	}{
		"write":           {"text/event-stream", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "data: 0\n\n") }, true},
		"flush":           {"text/event-stream", func(w http.ResponseWriter) { w.(http.Flusher).Flush() }, true},
		"with parameters": {"Text/Event-Stream; charset=utf-8", func(w http.ResponseWriter) { w.(http.Flusher).Flush() }, true},
		"other type":      {"text/event-streams", func(w http.ResponseWriter) { w.(http.Flusher).Flush() }, false},
		"no type":         {"", func(w http.ResponseWriter) { w.(http.Flusher).Flush() }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rg := newRig(t, "g/a")
			srv := rg.serve(func(w http.ResponseWriter, r *http.Request) {
				ctx := r.Context()
				w.Header().Set("Content-Type", tt.contentType)
				tt.begin(w)
				if given := rg.fleet.out == 0; given != tt.given {
					t.Fatalf("given back: %v, want %v", given, tt.given)
				}
				if !tt.given {
					return
				}
				if text := panicOf(func() { middleware.Conn(ctx) }); !strings.Contains(text, "event stream") {
					t.Errorf("Conn panics with %q", text)
				}
				if _, err := middleware.Acquire(ctx); err != nil {
					t.Error(err)
				}
				_, _ = io.WriteString(w, "data: 1\n\n")
				if rg.fleet.out != 1 {
					t.Error("the stream lost the connection that it asked for")
				}
				if ctx.Err() != nil {
					t.Error("the stream was cut off")
				}
			})
			h, body := fetch(t, srv.URL)
			if h.Get("X-Shard") != "a" || tt.given && !strings.HasSuffix(body, "data: 1\n\n") {
				t.Errorf("X-Shard %q, body %q", h.Get("X-Shard"), body)
			}
		})
	}
}

// TestHijack holds that a hijacked socket holds no connection.
func TestHijack(t *testing.T) {
	rg := newRig(t, "g/a")
	srv := rg.serve(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		if rg.fleet.out != 0 {
			t.Error("the connection is still out")
		}
		if text := panicOf(func() { middleware.Conn(r.Context()) }); !strings.Contains(text, "hijacked") {
			t.Errorf("Conn panics with %q", text)
		}
		writeRaw(t, rw)
	})
	if _, body := fetch(t, srv.URL); body != "raw" {
		t.Errorf("body %q", body)
	}
}

func writeRaw(t *testing.T, rw *bufio.ReadWriter) {
	t.Helper()
	_, _ = rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nraw")
	if err := rw.Flush(); err != nil {
		t.Error(err)
	}
}

// TestHijackFails holds that a hijack which did not come about costs nothing.
func TestHijackFails(t *testing.T) {
	rg := newRig(t, "g/a")
	rec := rg.get(func(w http.ResponseWriter, r *http.Request) {
		if _, _, err := http.NewResponseController(w).Hijack(); err == nil {
			t.Error("a recorder was hijacked")
		}
		if middleware.Conn(r.Context()) == nil {
			t.Error("the connection is gone")
		}
	})
	if rec.Header().Get("X-Shard") != "a" {
		t.Error("the answer does not name the shard")
	}
}

// opaque is a writer as many loggers make one: all that it offers beyond the
// least is a way to the one beneath.
type opaque struct{ http.ResponseWriter }

func (o opaque) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// TestUnwrapOnly holds that neither a flush nor a hijack gets past the
// middleware on a writer that can only be unwrapped.
func TestUnwrapOnly(t *testing.T) {
	for name, act := range map[string]func(w http.ResponseWriter) error{
		"flush": func(w http.ResponseWriter) error {
			w.Header().Set("Content-Type", "text/event-stream")
			return http.NewResponseController(w).Flush()
		},
		"flusher": func(w http.ResponseWriter) error {
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			return nil
		},
		"hijack": func(w http.ResponseWriter) error {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err == nil {
				defer func() { _ = conn.Close() }()
				writeRaw(t, rw)
			}
			return err
		},
	} {
		rg := newRig(t, "g/a")
		h := rg.handler(func(w http.ResponseWriter, _ *http.Request) {
			if err := act(w); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if rg.fleet.out != 0 {
				t.Errorf("%s: the connection is still out", name)
			}
		})
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(opaque{w}, r)
		}))
		fetch(t, srv.URL)
		srv.Close()
	}
}
