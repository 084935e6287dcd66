package middleware_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/shardhop/shardhop/middleware"
)

// TestReplayOnTheWire holds for real sockets that what reaches the client is
// one answer.
func TestReplayOnTheWire(t *testing.T) {
	tests := []struct {
		name   string
		first  func(w http.ResponseWriter, r *http.Request)
		status int
		body   string
		hints  int
	}{
		{"plain", func(http.ResponseWriter, *http.Request) {}, http.StatusOK, "served by b", 0},
		{"deadline", func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Error(err)
			}
		}, http.StatusOK, "served by b", 0},
		{"hints", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
		}, http.StatusServiceUnavailable, "failed", 1},
		{"hints after the status", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			w.WriteHeader(http.StatusEarlyHints)
		}, http.StatusBadGateway, "failed", 1},
		{"full duplex", func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
				t.Error(err)
			}
		}, http.StatusServiceUnavailable, "failed", 0},
		{"flush", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		}, http.StatusBadGateway, "failed", 0},
		{"copy", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.Copy(w, struct{ io.Reader }{strings.NewReader("page ")})
		}, http.StatusBadGateway, "page failed", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tw := failing(t, tt.first)
			srv := tw.serve(tw.ServeHTTP)
			hints := 0
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				Got1xxResponse: func(int, textproto.MIMEHeader) error { hints++; return nil },
			})
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			body, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != tt.status || string(body) != tt.body || hints != tt.hints {
				t.Errorf("status %d, body %q, %d hints, %v", res.StatusCode, body, hints, err)
			}
		})
	}
}

// TestReplayWebSocket holds that a hijacked request never runs again, and that
// an upgrade which lost its connection before does.
func TestReplayWebSocket(t *testing.T) {
	for name, tt := range map[string]struct {
		before bool // the connection goes before the upgrade
		runs   int
	}{
		"before the upgrade": {true, 2},
		"after the upgrade":  {false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			tw, runs := failing(t, nil), 0
			srv := tw.serve(func(w http.ResponseWriter, r *http.Request) {
				runs++
				if runs == 1 && tt.before {
					tw.cut()
					middleware.WriteError(w, r, errors.New("lost"))
					return
				}
				c, err := websocket.Accept(w, r, nil)
				if err != nil {
					t.Error(err)
					return
				}
				tw.cut()
				_ = c.Write(r.Context(), websocket.MessageText, fmt.Append(nil, runs))
				_ = c.Close(websocket.StatusNormalClosure, "")
			})
			c, res, err := websocket.Dial(t.Context(), srv.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			if res.Body != nil {
				defer func() { _ = res.Body.Close() }()
			}
			_, text, err := c.Read(t.Context())
			if err != nil || string(text) != fmt.Sprint(tt.runs) {
				t.Errorf("read %q, %v", text, err)
			}
			_ = c.CloseNow()
			srv.Close()
			if runs != tt.runs {
				t.Errorf("%d runs, want %d", runs, tt.runs)
			}
		})
	}
}

// An answer that was held back has the header that the handler gave it, and its
// trailers.
func TestHeldAnswerKeepsItsHeader(t *testing.T) {
	tw := failing(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		w.Header().Set("X-Early", "early")
		w.WriteHeader(http.StatusBadGateway)
		w.Header().Del("X-Early")
		w.Header().Set("X-Late", "late")
		w.Header().Set("X-Sum", "sum")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
	})
	res, err := http.Get(tw.serve(tw.ServeHTTP).URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"X-Early": "early", "X-Late": "", "X-Sum": ""} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("header %s: %q, want %q", name, got, want)
		}
	}
	if got := res.Trailer.Get("X-Sum"); got != "sum" {
		t.Errorf("trailer: %q", got)
	}
}
