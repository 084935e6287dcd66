package app_test

import (
	"net/http"
	"testing"

	"github.com/shardhop/shardhop/internal/lab"
)

// The embedded parts must not be kinder than the real ones.
func TestOnRealServers(t *testing.T) {
	db, rdb := lab.MariaDB(t), lab.Redis(t)
	game := start(t, "SHARDS=a", "SHARD_A_DSN="+db.DSN(), "REDIS_URL="+rdb.URL())
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
