package app_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"github.com/shardhop/shardhop/example-game/internal/app"
)

const password = "correct horse"

// start starts a game on free ports, with more variables as given.
func start(t *testing.T, environ ...string) *app.App {
	t.Helper()
	environ = append([]string{"ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0"}, environ...)
	a, err := app.Start(t.Context(), environ, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Shutdown)
	eventually(t, "the game is ready", func() bool {
		return newClient(t, a.URL()).do("GET", "/readyz", "").status == http.StatusOK
	})
	return a
}

// client is one browser: it keeps its cookies.
type client struct {
	t      testing.TB
	base   string
	http   *http.Client
	header http.Header
}

func newClient(t testing.TB, base string) *client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{
		t: t, base: base, header: http.Header{},
		http: &http.Client{Jar: jar, Transport: transport, Timeout: 40 * time.Second},
	}
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) shard() string { return a.header.Get("X-Shard") }

// field returns one field of a JSON object, as text.
func (a answer) field(name string) string {
	var object map[string]any
	decoder := json.NewDecoder(strings.NewReader(a.body))
	decoder.UseNumber()
	if decoder.Decode(&object) != nil {
		return "no JSON object: " + a.body
	}
	text, ok := object[name].(string)
	if !ok {
		data, _ := json.Marshal(object[name])
		return string(data)
	}
	return text
}

// do sends a request. A body is sent as JSON.
func (c *client) do(method, path, body string) answer {
	c.t.Helper()
	req, err := http.NewRequest(method, c.base+path, bytes.NewBufferString(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, values := range c.header {
		req.Header[name] = values
		if name == "Host" {
			req.Host = values[0]
		}
	}
	res, err := c.http.Do(req)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{res.StatusCode, res.Header, string(text)}
}

// want is do, and checks the status.
func (c *client) want(status int, method, path, body string) answer {
	c.t.Helper()
	a := c.do(method, path, body)
	if a.status != status {
		c.t.Fatalf("%s %s %s: %d %s, want %d", method, path, body, a.status, a.body, status)
	}
	return a
}

func account(name string) string {
	return `{"name":"` + name + `","password":"` + password + `"}`
}

func (c *client) register(name string) answer {
	c.t.Helper()
	return c.want(http.StatusCreated, "POST", "/api/register", account(name))
}

// eventually waits until check holds.
func eventually(t testing.TB, what string, check func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !check() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}
