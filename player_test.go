package shardhop_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop"
	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/shardrouter"
)

// Both routers take the handler that Hop makes, one around everything and one as
// its middleware.
func TestPlayerKeepsPlayingWhenTheShardDies(t *testing.T) {
	rdb := lab.Redis(t)
	shards := startShards(t, 2)
	mounts := map[string]func(*shardhop.Hop) http.Handler{
		"net/http": func(hop *shardhop.Hop) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("POST /login", login(hop))
			mux.HandleFunc("POST /dig", dig)
			return hop.Handler(mux)
		},
		"chi": func(hop *shardhop.Hop) http.Handler {
			r := chi.NewRouter()
			r.Use(hop.Handler)
			r.Method(http.MethodPost, "/login", login(hop))
			r.Post("/dig", dig)
			return r
		},
	}
	for name, mount := range mounts {
		t.Run(name, func(t *testing.T) {
			hop := open(t, shards.config(rdb.URL()))
			awaitUp(t, hop)
			player := newPlayer(t, mount(hop))
			player.post("/login")
			body, before := player.post("/dig")
			if want := "1 gold, not rotated"; body != want {
				t.Fatalf("dug %q, want %q", body, want)
			}

			shards[before].Kill()
			defer shards[before].Start()
			body, after := player.post("/dig")
			if want := "1 gold, rotated"; body != want { // two servers that do not share rows
				t.Errorf("dug %q, want %q", body, want)
			}
			if after == before {
				t.Errorf("served by %s, which is dead", after)
			}
			if got := player.stored(rdb.Client(), "db_server"); got != after {
				t.Errorf("the session names %q, served by %q", got, after)
			}
			if got := player.stored(rdb.Client(), "home"); got != before {
				t.Errorf("the session's home is %q, want %q", got, before)
			}
		})
	}
}

func TestOpenWithEverythingDown(t *testing.T) {
	rdb := lab.Redis(t)
	shards := startShards(t, 1)
	rdb.Stop()
	shards["server_1"].Stop()

	cfg := shards.config(rdb.URL())
	cfg.Router.HoldTimeout = shardrouter.HoldNone
	hop := open(t, cfg)
	mux := http.NewServeMux()
	mux.Handle("POST /login", login(hop))
	mux.HandleFunc("POST /dig", dig)
	player := newPlayer(t, hop.Handler(mux))
	if answer := player.do("/dig"); answer.status != http.StatusServiceUnavailable || answer.header.Get("Retry-After") == "" {
		t.Errorf("status %d, Retry-After %q, want 503 with one", answer.status, answer.header.Get("Retry-After"))
	}

	rdb.Start()
	shards["server_1"].Start()
	lab.Eventually(t, 15*time.Second, "both are back and a player digs", func() bool {
		return player.do("/login").status == http.StatusOK && player.do("/dig").status == http.StatusOK
	})
}

// awaitUp waits until hop itself has found every shard up.
func awaitUp(t *testing.T, hop *shardhop.Hop) {
	t.Helper()
	for _, shard := range hop.Router.Shards() {
		lab.Eventually(t, 15*time.Second, shard+" is up", func() bool {
			return hop.Router.Health().View(shard).State == healthcache.Up
		})
	}
}

// shards are real servers by their names.
type shards map[string]*lab.MariaDBServer

const createGold = `CREATE TABLE gold (name VARCHAR(64) PRIMARY KEY, amount INT NOT NULL)`

func startShards(t *testing.T, n int) shards {
	t.Helper()
	servers := make(shards)
	for i := range n {
		server := lab.MariaDB(t)
		lab.Exec(t, server.DSN(), createGold)
		servers[fmt.Sprintf("server_%d", i+1)] = server
	}
	return servers
}

func (s shards) config(redisURL string) shardhop.Config {
	cfg := shardhop.Config{
		RedisURL:   redisURL,
		Middleware: middleware.Config{ShardHeader: "X-Shard"},
	}
	for i := range len(s) {
		name := fmt.Sprintf("server_%d", i+1)
		cfg.Router.Shards = append(cfg.Router.Shards, shardrouter.Shard{Name: name, DSN: shardrouter.DSN(s[name].DSN())})
	}
	return cfg
}

// login logs in whoever the session's test says.
func login(hop *shardhop.Hop) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := hop.Sessions.RenewToken(r.Context()); err != nil {
			http.Error(w, "no session", http.StatusServiceUnavailable)
			return
		}
		hop.Sessions.Put(r.Context(), "name", r.FormValue("name"))
	}
}

func dig(w http.ResponseWriter, r *http.Request) {
	var gold int
	err := middleware.Tx(r.Context(), func(ctx context.Context, tx *sql.Tx) error {
		const dig = `INSERT INTO gold VALUES (?, 1) ON DUPLICATE KEY UPDATE amount = amount + 1`
		if _, err := tx.ExecContext(ctx, dig, r.FormValue("name")); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT amount FROM gold WHERE name = ?`, r.FormValue("name")).Scan(&gold)
	})
	if err != nil {
		middleware.WriteError(w, r, err)
		return
	}
	rotated := "not rotated"
	if middleware.Rotated(r.Context()) {
		rotated = "rotated"
	}
	fmt.Fprintf(w, "%d gold, %s", gold, rotated)
}

// player is a browser with one cookie.
type player struct {
	t      *testing.T
	name   string
	base   string
	client *http.Client
}

func newPlayer(t *testing.T, handler http.Handler) *player {
	t.Helper()
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	return playerAt(t, srv.URL)
}

func playerAt(t *testing.T, base string) *player {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	name := strings.ReplaceAll(t.Name(), "/", "-")
	return &player{t: t, name: name, base: base, client: &http.Client{Jar: jar, Transport: transport, Timeout: time.Minute}}
}

// reply is an answer with its body read.
type reply struct {
	status int
	header http.Header
	body   string
}

func (p *player) do(path string) reply {
	p.t.Helper()
	resp, err := p.client.Post(p.base+path+"?name="+p.name, "", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, strings.TrimSpace(string(body))}
}

// post posts and gives the body of a good answer and the shard that served it.
func (p *player) post(path string) (body, shard string) {
	p.t.Helper()
	answer := p.do(path)
	if answer.status != http.StatusOK {
		p.t.Fatalf("%s: %d %s", path, answer.status, answer.body)
	}
	return answer.body, answer.header.Get("X-Shard")
}

// stored reads a field of the one session in Redis that belongs to the player.
func (p *player) stored(rdb *redis.Client, field string) string {
	p.t.Helper()
	keys, err := rdb.Keys(p.t.Context(), "session:*").Result()
	if err != nil {
		p.t.Fatal(err)
	}
	for _, key := range keys {
		if strings.Contains(rdb.HGet(p.t.Context(), key, "d:name").Val(), p.name) {
			return rdb.HGet(p.t.Context(), key, field).Val()
		}
	}
	p.t.Fatalf("no session of %s among %v", p.name, keys)
	return ""
}
