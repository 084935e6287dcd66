package chaos_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/shardhop/shardhop/example-game/internal/app"
)

// listed is what operators see of a shard.
type listed struct{ Shard, State, Writer string }

// out reports whether the game would not use the shard.
func (s listed) out() bool { return s.State != "up" }

// shardsOf asks the game for its shards, as an operator does.
func shardsOf(t *testing.T, game *app.App) (shards []listed) {
	t.Helper()
	res, err := http.Get(game.AdminURL() + "/shards")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(&shards); err != nil {
		t.Fatal(err)
	}
	return shards
}
