package httpanswer_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/felixge/httpsnoop"

	"github.com/shardhop/shardhop/internal/httpanswer"
)

// opaque is a writer as many loggers make one: all that it offers beyond the
// least is a way to the one beneath.
type opaque struct{ http.ResponseWriter }

func (o opaque) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// flushing is opaque but for a Flush of its own.
type flushing struct{ opaque }

func (f flushing) Flush() { f.ResponseWriter.(http.Flusher).Flush() }

// serve answers one request with h on a real socket and returns the body.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	res, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestControllableAsItIs holds that a writer whose hooks nobody can pass is
// left alone.
func TestControllableAsItIs(t *testing.T) {
	rec := httptest.NewRecorder()
	if w := httpanswer.Controllable(rec); w != http.ResponseWriter(rec) {
		t.Errorf("a recorder, which cannot be unwrapped, became %T", w)
	}
	serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if got := httpanswer.Controllable(w); got != w {
			t.Errorf("the server's own writer became %T", got)
		}
		snooped := httpsnoop.Wrap(w, httpsnoop.Hooks{})
		if got := httpanswer.Controllable(snooped); got != snooped {
			t.Errorf("a writer with Unwrap, Flush and Hijack became %T", got)
		}
	})
}

// TestControllableCannotBePassed holds that hooks on the result see every flush
// and hijack, and that each reaches the socket.
func TestControllableCannotBePassed(t *testing.T) {
	acts := map[string]struct {
		act  func(w http.ResponseWriter) error
		want string
	}{
		"Flusher": {func(w http.ResponseWriter) error {
			w.(http.Flusher).Flush()
			return nil
		}, ""},
		"controller's Flush": {func(w http.ResponseWriter) error {
			return http.NewResponseController(w).Flush()
		}, ""},
		"Hijacker": {func(w http.ResponseWriter) error {
			return answerRaw(w.(http.Hijacker).Hijack())
		}, "raw"},
		"controller's Hijack": {func(w http.ResponseWriter) error {
			return answerRaw(http.NewResponseController(w).Hijack())
		}, "raw"},
	}
	bases := map[string]func(w http.ResponseWriter) http.ResponseWriter{
		"Unwrap only":      func(w http.ResponseWriter) http.ResponseWriter { return opaque{w} },
		"Unwrap and Flush": func(w http.ResponseWriter) http.ResponseWriter { return flushing{opaque{w}} },
		"two layers":       func(w http.ResponseWriter) http.ResponseWriter { return opaque{opaque{w}} },
	}
	for base, wrap := range bases {
		for name, tt := range acts {
			seen := 0
			body := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if err := tt.act(hooked(httpanswer.Controllable(wrap(w)), &seen)); err != nil {
					t.Errorf("%s on %s: %v", name, base, err)
				}
			})
			if seen != 1 || body != tt.want {
				t.Errorf("%s on %s: the hooks saw %d calls, want 1; body %q, want %q", name, base, seen, body, tt.want)
			}
		}
	}
}

// hooked returns w with hooks that count the flushes and hijacks.
func hooked(w http.ResponseWriter, seen *int) http.ResponseWriter {
	return httpsnoop.Wrap(w, httpsnoop.Hooks{
		Flush: func(next httpsnoop.FlushFunc) httpsnoop.FlushFunc {
			return func() { *seen++; next() }
		},
		Hijack: func(next httpsnoop.HijackFunc) httpsnoop.HijackFunc {
			return func() (net.Conn, *bufio.ReadWriter, error) { *seen++; return next() }
		},
	})
}

// answerRaw answers on a hijacked socket.
func answerRaw(conn net.Conn, rw *bufio.ReadWriter, err error) error {
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, _ = rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nraw")
	return rw.Flush()
}

// TestControllableReachesTheRest holds that what is not about flushing and
// hijacking works through the result as it did before.
func TestControllableReachesTheRest(t *testing.T) {
	serve(t, func(w http.ResponseWriter, _ *http.Request) {
		got := httpanswer.Controllable(opaque{w})
		if beneath := got.(interface{ Unwrap() http.ResponseWriter }).Unwrap(); beneath != http.ResponseWriter(opaque{w}) {
			t.Errorf("unwraps to %T", beneath)
		}
		c := http.NewResponseController(got)
		if err := errors.Join(c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{}), c.EnableFullDuplex()); err != nil {
			t.Error(err)
		}
	})
}

// TestControllableOutOfReach holds that what no layer supports is told as such.
func TestControllableOutOfReach(t *testing.T) {
	least := opaque{struct{ http.ResponseWriter }{httptest.NewRecorder()}}
	w := httpanswer.Controllable(least)
	w.(http.Flusher).Flush() // has no way to tell
	c := http.NewResponseController(w)
	if err := c.Flush(); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("Flush: %v", err)
	}
	if _, _, err := c.Hijack(); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("Hijack: %v", err)
	}
}
