package app_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/shardhop/shardhop/example-game/internal/app"
	"github.com/shardhop/shardhop/internal/lab"
)

// The embedded parts must not be kinder than the real ones.
func TestOnRealServers(t *testing.T) {
	db, rdb := lab.MariaDB(t), lab.Redis(t)
	game := start(t, "SHARDS=a", "SHARD_A_DSN="+db.DSN(), "REDIS_URL="+rdb.URL(), "SHARD_HOLD_TIMEOUT=off")
	ann, bob := newClient(t, game.URL()), newClient(t, game.URL())
	ann.register("ann")
	bob.register("bob")
	newClient(t, game.URL()).register("Ann") // another name, in MySQL's eyes as well
	if got := newClient(t, game.URL()).do("POST", "/api/register", account("ann")); got.status != http.StatusConflict {
		t.Errorf("a second ann: %d %s", got.status, got.body)
	}
	for range 3 {
		ann.want(http.StatusOK, "POST", "/api/dig", "")
	}
	if got := ann.want(http.StatusOK, "POST", "/api/transfer", `{"to":"bob","amount":2}`); got.field("gold") != "1" {
		t.Errorf("transfer: %s", got.body)
	}
	board := `[{"name":"bob","gold":2},{"name":"ann","gold":1},{"name":"Ann","gold":0}]` + "\n"
	if got := ann.want(http.StatusOK, "GET", "/api/leaderboard", ""); got.body != board {
		t.Errorf("leaderboard: %s", got.body)
	}
	newClient(t, game.URL()).want(http.StatusNotFound, "POST", "/lab/a/stop", "")
	newClient(t, game.AdminURL()).want(http.StatusNotFound, "POST", "/lab/a/stop", "")

	db.Kill()
	if got := ann.do("POST", "/api/dig", ""); got.status != http.StatusServiceUnavailable {
		t.Errorf("dig without a server: %d %s", got.status, got.body)
	}
	db.Restart()
	eventually(t, "ann plays on, still logged in", func() bool {
		return ann.do("GET", "/api/me", "").field("gold") == "1"
	})
}

// onGalera starts a game on three nodes that hold the same rows, and returns the
// node of each shard.
func onGalera(t *testing.T, environ ...string) (*app.App, map[string]*lab.MariaDBServer) {
	t.Helper()
	nodes := map[string]*lab.MariaDBServer{}
	environ = append(environ, "SHARDS=server_1,server_2,server_3", "REDIS_URL="+lab.Redis(t).URL())
	for i, node := range lab.Galera(t, 3) {
		nodes[fmt.Sprintf("server_%d", i+1)] = node
		environ = append(environ, fmt.Sprintf("SHARD_SERVER_%d_DSN=%s", i+1, node.DSN()))
	}
	return start(t, environ...), nodes
}

// On Galera, writers of one row on several nodes meet only at COMMIT, where
// all but one are rolled back. That must not reach the players.
func TestEverybodyGivesToOneOnGalera(t *testing.T) {
	const givers, gifts = 8, 6
	game, _ := onGalera(t)
	rich := newClient(t, game.URL())
	rich.register("rich")
	var wg sync.WaitGroup
	for i := range givers {
		c := newClient(t, game.URL())
		c.register(fmt.Sprintf("giver-%d", i))
		wg.Go(func() {
			for range gifts {
				for _, call := range [][2]string{{"/api/dig", ""}, {"/api/transfer", `{"to":"rich","amount":1}`}} {
					if got := c.do("POST", call[0], call[1]); got.status != http.StatusOK {
						t.Errorf("%s: %d %s", call[0], got.status, got.body)
					}
				}
			}
		})
	}
	wg.Wait()
	eventually(t, "every gift has arrived", func() bool {
		return rich.do("GET", "/api/me", "").field("gold") == strconv.Itoa(givers*gifts)
	})
}

// While Redis's memory is full, who is logged in plays on and may log out, and
// nobody gets in or leaves half an account behind.
func TestRedisIsFull(t *testing.T) {
	db, rdb := lab.MariaDB(t), lab.Redis(t)
	game := start(t, "SHARDS=a", "SHARD_A_DSN="+db.DSN(), "REDIS_URL="+rdb.URL())
	limit := func(bytes string) {
		if err := rdb.Client().ConfigSet(t.Context(), "maxmemory", bytes).Err(); err != nil {
			t.Fatal(err)
		}
	}
	ann, bob := newClient(t, game.URL()), newClient(t, game.URL())
	ann.register("ann")
	bob.register("bob")
	limit("1")
	for range 3 {
		ann.want(http.StatusOK, "POST", "/api/dig", "")
	}
	late := newClient(t, game.URL())
	late.want(http.StatusServiceUnavailable, "POST", "/api/register", account("late"))
	if got := late.do("POST", "/api/login", account("ann")); got.status != http.StatusServiceUnavailable || got.field("code") != "session_not_saved" {
		t.Errorf("login: %d %s", got.status, got.body)
	}
	bob.want(http.StatusNoContent, "POST", "/api/logout", "")
	bob.want(http.StatusUnauthorized, "GET", "/api/me", "")
	limit("0")
	late.register("late")
	if got := ann.want(http.StatusOK, "GET", "/api/me", ""); got.field("gold") != "3" {
		t.Errorf("ann has %s", got.body)
	}
}
