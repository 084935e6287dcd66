package storetest

import (
	"net/http"
	"strings"
	"testing"

	coder "github.com/coder/websocket"
	"github.com/go-chi/chi/v5/middleware"
	gorilla "github.com/gorilla/websocket"
)

func socketCases() []Case {
	return []Case{
		{"coder's WebSocket talks and sets the cookie", socket(EchoCoder, nil, true)},
		{"coder's WebSocket talks under chi's logger", socket(EchoCoder, quietLogger, true)},
		{"gorilla's WebSocket talks", socket(EchoGorilla, nil, false)},
		{"gorilla's WebSocket talks under chi's logger", socket(EchoGorilla, quietLogger, false)},
	}
}

var quietLogger = middleware.RequestLogger(&middleware.DefaultLogFormatter{Logger: discard{}, NoColor: true})

// socket upgrades a visitor who gets a session in the same request.
func socket(upgrade http.HandlerFunc, outer func(http.Handler) http.Handler, setsCookie bool) func(testing.TB, Harness) {
	return func(t testing.TB, open Harness) {
		s := newSiteUnder(t, open, outer)
		s.mux.HandleFunc("/socket", func(w http.ResponseWriter, r *http.Request) {
			s.Put(r.Context(), "seen", "1")
			upgrade(w, r)
		})
		b := s.browser()
		b.visit("/put?uid=7")
		s.talk(b, b.token(), func() { s.want(b, "uid", "7", "seen", "1") })

		cookie := s.talk(s.browser(), "", func() { s.wantStored(2) }).Get("Set-Cookie")
		if setsCookie && !strings.HasPrefix(cookie, "session=") {
			t.Errorf("the upgrade of a new session set the cookie %q", cookie)
		}
	}
}

// talk opens a socket, calls meanwhile, wants its message back, and returns the
// headers of the upgrade.
func (s *site) talk(b *browser, token string, meanwhile func()) http.Header {
	s.t.Helper()
	header := http.Header{}
	if token != "" {
		header.Set("Cookie", s.Settings.Cookie.Name+"="+token)
	}
	url := strings.Replace(s.url, "http", "ws", 1) + "/socket"
	conn, res, err := coder.Dial(s.t.Context(), url, &coder.DialOptions{HTTPHeader: header, HTTPClient: b.client}) //nolint:bodyclose // the connection owns it
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	meanwhile()
	if err := conn.Write(s.t.Context(), coder.MessageText, []byte("dig")); err != nil {
		s.t.Fatal(err)
	}
	if _, message, err := conn.Read(s.t.Context()); err != nil || string(message) != "dig" {
		s.t.Errorf("echo: %q, %v", message, err)
	}
	return res.Header
}

// EchoCoder upgrades to a WebSocket of coder/websocket and sends one message back.
func EchoCoder(w http.ResponseWriter, r *http.Request) {
	conn, err := coder.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	if kind, message, err := conn.Read(r.Context()); err == nil {
		_ = conn.Write(r.Context(), kind, message)
	}
}

// EchoGorilla upgrades to a WebSocket of gorilla/websocket and sends one message
// back.
func EchoGorilla(w http.ResponseWriter, r *http.Request) {
	var upgrader gorilla.Upgrader
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	if kind, message, err := conn.ReadMessage(); err == nil {
		_ = conn.WriteMessage(kind, message)
	}
}
