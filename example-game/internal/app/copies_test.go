package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/shardhop/shardhop/example-game/internal/app"
)

// shardOf is what the admin listener says of a shard.
type shardOf struct {
	Shard  string   `json:"shard"`
	State  string   `json:"state"`
	Copies []string `json:"copies"`
	Pool   struct {
		Held int `json:"held"`
	} `json:"pool"`
}

func shardsOf(t *testing.T, game *app.App) map[string]shardOf {
	t.Helper()
	var list []shardOf
	if err := json.Unmarshal([]byte(newClient(t, game.AdminURL()).want(http.StatusOK, "GET", "/shards", "").body), &list); err != nil {
		t.Fatal(err)
	}
	found := map[string]shardOf{}
	for _, s := range list {
		found[s.Shard] = s
	}
	return found
}

// Where players move only to copies, those of a Galera cluster do: they play on with
// their gold, and their keys are known there.
func TestPlayersMoveToProvedCopies(t *testing.T) {
	game, nodes := onGalera(t, "SHARD_ROTATE_TO=copies")
	eventually(t, "all are copies of each other", func() bool {
		for _, s := range shardsOf(t, game) {
			if len(s.Copies) != len(nodes)-1 {
				return false
			}
		}
		return true
	})
	ann := newClient(t, game.URL())
	home := ann.register("ann").field("shard")
	wantGold(t, "at home", ann.withKey("POST", "/api/dig", "", "k1"), "1", false)

	nodes[home].Kill()
	wantGold(t, "the key from before", ann.withKey("POST", "/api/dig", "", "k1"), "1", true)
	wantGold(t, "moved", ann.withKey("POST", "/api/dig", "", "k2"), "2", false)
	me := ann.want(http.StatusOK, "GET", "/api/me", "")
	if me.field("gold") != "2" || me.field("home") != home || me.shard() == home {
		t.Errorf("afterwards: %s on %s, want two gold away from %s", me.body, me.shard(), home)
	}
}

// awayFrom is a player on another shard, as soon as that takes players.
func awayFrom(t *testing.T, game *app.App, home string) (player *client) {
	t.Helper()
	tries := 0
	eventually(t, "somebody plays away from "+home, func() bool {
		tries++
		player = newClient(t, game.URL())
		return player.register(fmt.Sprintf("away-%d", tries)).field("shard") != home
	})
	return player
}

// Where they are not copies nobody is moved: a player is held for the own server, or
// refused where that is out for too long, and never told to be elsewhere. Only who
// asks for them by name from another shard is told that.
func TestPlayersDoNotMoveToOtherRows(t *testing.T) {
	tests := []struct {
		name    string
		environ []string
		held    bool
	}{
		{"held", []string{"SHARD_HOLD_TIMEOUT=30s"}, true},
		{"not held", []string{"SHARD_HOLD_TIMEOUT=off"}, false},
		{"to fail", []string{"SHARD_A_ON_FAILURE=fail", "SHARD_B_ON_FAILURE=fail"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			servers, environ := separate(t, "a", "b")
			game := start(t, append(append(environ, "SHARD_ROTATE_TO=copies"), tt.environ...)...)
			ann := newClient(t, game.URL())
			home := ann.register("ann").field("shard")
			bea := awayFrom(t, game, home)
			if copies := shardsOf(t, game)[home].Copies; len(copies) > 0 {
				t.Fatalf("%s has copies: %v", home, copies)
			}
			wantGold(t, "at home", ann.do("POST", "/api/dig", ""), "1", false)
			wantGold(t, "on the other", bea.do("POST", "/api/dig", ""), "1", false)

			do(t, servers[home], home, "stop")
			answers := make(chan answer, 1)
			go func() { answers <- ann.do("POST", "/api/dig", "") }()
			if tt.held {
				eventually(t, "ann is held", func() bool { return shardsOf(t, game)[home].Pool.Held == 1 })
			} else if got := <-answers; got.status != http.StatusServiceUnavailable || got.field("code") != "unavailable" || got.header.Get("Retry-After") == "" {
				t.Errorf("dig without %s: %d %s", home, got.status, got.body)
			}
			if got := bea.do("POST", "/api/transfer", `{"to":"ann","amount":1}`); got.field("code") != "player_elsewhere" {
				t.Errorf("a gift to ann while %s is down: %d %s", home, got.status, got.body)
			}
			wantGold(t, "whose server is up", bea.do("POST", "/api/dig", ""), "2", false)
			if got := newClient(t, game.URL()).do("POST", "/api/register", account("ann")); got.field("code") != "name_taken" {
				t.Errorf("a second ann: %d %s", got.status, got.body)
			}

			do(t, servers[home], home, "start")
			gold := "1"
			if tt.held {
				gold = "2"
				wantGold(t, "held", <-answers, gold, false)
			}
			eventually(t, "ann is at home, still logged in", func() bool {
				me := ann.do("GET", "/api/me", "")
				return me.status == http.StatusOK && me.shard() == home && me.field("gold") == gold
			})
		})
	}
}
