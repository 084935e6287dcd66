package app_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardhop/shardhop/example-game/internal/app"
	"github.com/shardhop/shardhop/example-game/internal/embedded"
)

// separate starts one MySQL of its own for each shard: they do not hold the
// same rows. It returns the variables that name them.
func separate(t *testing.T, shards ...string) (map[string]*embedded.Cluster, []string) {
	t.Helper()
	servers := map[string]*embedded.Cluster{}
	environ := []string{"SHARDS=" + strings.Join(shards, ",")}
	for _, shard := range shards {
		c, err := embedded.NewCluster(embedded.Config{Nodes: []string{shard}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		servers[shard] = c
		environ = append(environ, "SHARD_"+strings.ToUpper(shard)+"_DSN="+c.DSN(shard))
	}
	return servers, environ
}

func do(t *testing.T, c *embedded.Cluster, shard, verb string) {
	t.Helper()
	if err := c.Do(shard, verb); err != nil {
		t.Fatal(err)
	}
}

func TestPlayerElsewhereNeverBecomesASecondHero(t *testing.T) {
	servers, environ := separate(t, "a", "b")
	game := start(t, environ...)
	ann := newClient(t, game.URL())
	home := ann.register("ann").field("shard")
	other := map[string]string{"a": "b", "b": "a"}[home]
	ann.want(http.StatusOK, "POST", "/api/dig", "")

	do(t, servers[home], home, "stop")
	for _, call := range []string{"GET /api/me", "POST /api/dig"} {
		method, path, _ := strings.Cut(call, " ")
		if got := ann.do(method, path, ""); got.status != http.StatusServiceUnavailable || got.field("code") != "player_elsewhere" {
			t.Errorf("%s without %s: %d %s", call, home, got.status, got.body)
		} else if got.shard() != other {
			t.Errorf("%s without %s: X-Shard %q", call, home, got.shard())
		}
	}
	thief := newClient(t, game.URL())
	if got := thief.do("POST", "/api/register", account("ann")); got.status != http.StatusConflict {
		t.Errorf("a second ann while %s is down: %d %s", home, got.status, got.body)
	}
	if got := thief.do("POST", "/api/login", account("ann")); got.field("code") != "player_elsewhere" {
		t.Errorf("login while %s is down: %d %s", home, got.status, got.body)
	}
	if got := thief.do("POST", "/api/login", account("nobody")); got.status != http.StatusUnauthorized {
		t.Errorf("login of nobody while %s is down: %d %s", home, got.status, got.body)
	}
	bea := newClient(t, game.URL())
	bea.register("bea") // whoever is new still gets in
	bea.want(http.StatusOK, "POST", "/api/dig", "")
	if got := bea.do("POST", "/api/transfer", `{"to":"ann","amount":1}`); got.field("code") != "player_elsewhere" {
		t.Errorf("transfer while %s is down: %d %s", home, got.status, got.body)
	}
	bea.want(http.StatusNotFound, "POST", "/api/transfer", `{"to":"nobody","amount":1}`)

	do(t, servers[home], home, "start")
	eventually(t, "ann finds her gold again", func() bool {
		got := ann.do("GET", "/api/me", "")
		return got.status == http.StatusOK && got.field("gold") == "1" && got.shard() == home
	})
}

func TestLoginFindsThePlayerOnAnyShardOfTheRealm(t *testing.T) {
	_, environ := separate(t, "a", "b", "c")
	game := start(t, environ...)
	for _, name := range []string{"ann", "bob", "cid"} {
		shard := newClient(t, game.URL()).register(name).field("shard")
		for range 2 { // the policy of assignment picks another shard each time
			c := newClient(t, game.URL())
			if got := c.want(http.StatusOK, "POST", "/api/login", account(name)); got.field("shard") != shard || got.shard() != shard {
				t.Errorf("%s registered on %s and logged in on %s (%s)", name, shard, got.shard(), got.body)
			}
			c.want(http.StatusOK, "POST", "/api/dig", "")
		}
	}
}

func TestGoldCannotReachAnotherServer(t *testing.T) {
	_, environ := separate(t, "a", "b")
	game := start(t, environ...)
	ann := newClient(t, game.URL())
	ann.register("ann")
	ann.want(http.StatusOK, "POST", "/api/dig", "")
	newClient(t, game.URL()).register("bob") // on the other one
	if got := ann.do("POST", "/api/transfer", `{"to":"bob","amount":1}`); got.field("code") != "player_elsewhere" {
		t.Errorf("transfer: %d %s", got.status, got.body)
	}
	ann.want(http.StatusNotFound, "POST", "/api/transfer", `{"to":"nobody","amount":1}`)
}

func TestOneShardDownAtBoot(t *testing.T) {
	servers, environ := separate(t, "a", "b")
	do(t, servers["b"], "b", "stop")
	game := start(t, environ...)
	for _, name := range []string{"ann", "bob"} {
		if got := newClient(t, game.URL()).register(name); got.shard() != "a" {
			t.Errorf("%s is on %s", name, got.shard())
		}
	}
	do(t, servers["b"], "b", "start")
	tries := 0
	eventually(t, "b gets players", func() bool {
		tries++
		return newClient(t, game.URL()).register("late-"+strings.Repeat("x", tries%20+1)+time.Now().Format("05000")).shard() == "b"
	})
}

func TestAllShardsDown(t *testing.T) {
	var logged safeBuffer
	servers, environ := separate(t, "a", "b")
	environ = append(environ, "ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0", "SHARD_HOLD_TIMEOUT=off")
	for i, v := range environ {
		environ[i] = strings.Replace(v, "_DSN=game@", "_DSN=game:hunter2@", 1)
	}
	game, err := app.Start(t.Context(), environ, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(game.Shutdown)
	ann := newClient(t, game.URL())
	home := ann.register("ann").field("shard")
	for shard, c := range servers {
		do(t, c, shard, "stop")
	}
	for _, call := range []string{"GET /api/me", "POST /api/dig", "POST /api/login", "POST /api/register", "GET /api/leaderboard", "GET /readyz"} {
		method, path, _ := strings.Cut(call, " ")
		body := ""
		if strings.HasPrefix(path, "/api/login") || strings.HasPrefix(path, "/api/register") {
			body = account("bea")
		}
		got := newClientLike(ann).do(method, path, body)
		if got.status != http.StatusServiceUnavailable {
			t.Errorf("%s: %d %s", call, got.status, got.body)
		}
		for _, secret := range []string{"127.0.0.1", "hunter2", "refused", "shardrouter", "mysql"} {
			if strings.Contains(got.body, secret) {
				t.Errorf("%s tells %q: %s", call, secret, got.body)
			}
		}
	}
	for shard, c := range servers {
		do(t, c, shard, "start")
	}
	eventually(t, "ann plays again, still logged in", func() bool {
		got := ann.do("GET", "/api/me", "")
		return got.status == http.StatusOK && got.shard() == home
	})
	if strings.Contains(logged.String(), "hunter2") {
		t.Error("the log has a password in it")
	}
}

// newClientLike is a client with the same cookies, whose new ones are its own.
func newClientLike(c *client) *client {
	like := newClient(c.t, c.base)
	req, _ := http.NewRequest("GET", c.base, nil)
	like.http.Jar.SetCookies(req.URL, c.http.Jar.Cookies(req.URL))
	return like
}

type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestEventStreamsHoldNoConnection(t *testing.T) {
	game := start(t, "SHARD_SERVER_1_MAX_CONNS=2", "SHARD_SERVER_2_MAX_CONNS=2", "SHARD_SERVER_3_MAX_CONNS=2")
	ann, operator := newClient(t, game.URL()), newClient(t, game.AdminURL())
	shard := ann.register("ann").field("shard")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var streams []*stream
	for range 5 {
		streams = append(streams, listen(ctx, t, ann))
	}
	for _, s := range streams {
		s.next(t, `"shard":"`+shard+`"`)
	}
	ann.want(http.StatusOK, "POST", "/api/dig", "")
	operator.want(http.StatusOK, "POST", "/lab/"+shard+"/stop", "")
	moved := ann.want(http.StatusOK, "POST", "/api/dig", "").shard()
	for _, s := range streams {
		s.next(t, `"shard":"`+moved+`","home":"`+shard+`"`)
	}
	ann.want(http.StatusNoContent, "POST", "/api/logout", "")
	for _, s := range streams {
		s.ends(t)
	}
}

func TestRunStopsWhileStreamsAreOpen(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := make(lines, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- app.Run(ctx, []string{"ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0"}, out, t.Output())
	}()
	line := <-out
	for _, part := range []string{"game on http://127.0.0.1:", "admin on http://127.0.0.1:", "embedded: MySQL (server_1, server_2, server_3) and Redis"} {
		if !strings.Contains(line, part) {
			t.Errorf("start line %q lacks %q", line, part)
		}
	}
	url := strings.TrimSuffix(strings.Fields(line)[2], ",")
	ann := newClient(t, url)
	ann.register("ann")
	s := listen(t.Context(), t, ann)
	s.next(t, "shard")
	cancel()
	s.ends(t)
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	if conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
		_ = conn.Close()
		t.Error("the port is still open")
	}
}

// lines is a writer that passes on what is written.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}
