package sessionstore_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/alexedwards/scs/v2"
	coder "github.com/coder/websocket"

	"github.com/shardhop/shardhop/internal/storetest"
	"github.com/shardhop/shardhop/sessionstore"
)

// TestWebSocketThroughEveryOrder upgrades through LoadAndSave (S), chi's logger
// (L), a second manager (M) and scs's own LoadAndSave (O), the first letter
// innermost. O is never inside S: gorilla cannot hijack what scs gives it.
func TestWebSocketThroughEveryOrder(t *testing.T) {
	upgraders := map[string]http.HandlerFunc{"coder": storetest.EchoCoder, "gorilla": storetest.EchoGorilla}
	for name, upgrade := range upgraders {
		for _, order := range []string{"S", "SL", "LS", "SM", "MS", "SLM", "SML", "LSM", "MSL", "LMS", "MLS", "SO", "SLO", "SOL", "LSO"} {
			t.Run(name+" "+order, func(t *testing.T) {
				rdb := miniClient(t)
				m := sessionstore.New(rdb, patient)
				other := sessionstore.New(rdb, sessionstore.Config{Prefix: "other:"})
				other.Cookie.Name = "other"
				stock := scs.New()
				stock.Cookie.Name = "stock"
				layers := map[rune]func(http.Handler) http.Handler{
					'S': m.LoadAndSave, 'L': quietLogger, 'M': other.LoadAndSave, 'O': stock.LoadAndSave,
				}

				var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					m.Put(r.Context(), "seen", true)
					upgrade(w, r)
				})
				for _, layer := range order {
					h = layers[layer](h)
				}
				url := strings.Replace(serve(t, h, io.Discard), "http", "ws", 1)
				header := echo(t, url)
				cookie := header.Get("Set-Cookie")
				if name == "coder" && !strings.HasPrefix(cookie, "session=") {
					t.Errorf("the upgrade set the cookie %q", cookie)
				}
				if n := rdb.DBSize(t.Context()).Val(); n != 1 {
					t.Errorf("%d sessions in Redis, want 1", n)
				}
			})
		}
	}
}

// echo sends a message, wants it back, and returns the headers of the upgrade.
func echo(t *testing.T, url string) http.Header {
	t.Helper()
	conn, res, err := coder.Dial(t.Context(), url, nil) //nolint:bodyclose // the connection owns it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	if err := conn.Write(t.Context(), coder.MessageText, []byte("dig")); err != nil {
		t.Fatal(err)
	}
	_, message, err := conn.Read(t.Context())
	if err != nil || string(message) != "dig" {
		t.Fatalf("echo: %q, %v", message, err)
	}
	return res.Header
}
