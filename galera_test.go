package shardhop_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
)

// Three members of one Galera cluster hold the same rows, so a player who is
// moved among them loses nothing.
func TestPlayersOfAGaleraClusterKeepTheirGold(t *testing.T) {
	cluster := shards{}
	for i, server := range lab.Galera(t, 3) {
		cluster[fmt.Sprintf("server_%d", i+1)] = server
	}
	lab.Exec(t, cluster["server_1"].DSN(), createGold)
	rdb := lab.Redis(t)
	client := rdb.Client()
	hop := open(t, cluster.config(rdb.URL()))
	awaitUp(t, hop)

	mux := http.NewServeMux()
	mux.Handle("POST /login", login(hop))
	mux.HandleFunc("POST /dig", dig)
	srv := httptest.NewServer(hop.Handler(mux))
	t.Cleanup(srv.Close)

	players := joinPlayers(t, srv.URL, 9)
	for shard, n := range spread(client, players) {
		if n != 3 {
			t.Errorf("%d of nine new players are on %s, want 3", n, shard)
		}
	}

	const dead = "server_2"
	cluster[dead].Kill()
	killed := time.Now()
	for _, p := range players {
		home := p.stored(client, "home")
		body, shard := p.post("/dig")
		want := "2 gold, not rotated"
		if home == dead {
			want = "2 gold, rotated"
		}
		if body != want || shard == dead {
			t.Errorf("%s of %s dug %q on %s, want %q elsewhere", p.name, home, body, shard, want)
		}
		if got := p.stored(client, "db_server"); got != shard {
			t.Errorf("the session of %s names %s, served by %s", p.name, got, shard)
		}
		if got := p.stored(client, "home"); got != home {
			t.Errorf("the home of %s went from %s to %s", p.name, home, got)
		}
	}
	awaitState(t, client, healthcache.Down, max(time.Second, 3*time.Second-time.Since(killed)), dead)

	cluster[dead].Start()
	awaitState(t, client, healthcache.Up, 30*time.Second, dead)
	if n := spread(client, joinPlayers(t, srv.URL, 3))[dead]; n != 1 {
		t.Errorf("%d of three new players are on %s after its return, want 1", n, dead)
	}
}

// joinPlayers logs n new players in, who dig once each.
func joinPlayers(t *testing.T, base string, n int) []*player {
	t.Helper()
	players := make([]*player, n)
	for i := range players {
		p := playerAt(t, base)
		p.name = fmt.Sprintf("player-%d-%d", time.Now().UnixNano(), i)
		p.post("/login")
		p.post("/dig")
		players[i] = p
	}
	return players
}

// spread counts the players by the shard that their sessions name.
func spread(client *redis.Client, players []*player) map[string]int {
	count := map[string]int{}
	for _, p := range players {
		count[p.stored(client, "db_server")]++
	}
	return count
}

// awaitState waits until the health keys in Redis say state.
func awaitState(t *testing.T, client *redis.Client, state healthcache.State, within time.Duration, shards ...string) {
	t.Helper()
	for _, shard := range shards {
		lab.Eventually(t, within, fmt.Sprintf("db:health:%s says %s", shard, state), func() bool {
			var s healthcache.Status
			text, err := client.Get(t.Context(), "db:health:"+shard).Result()
			return err == nil && json.Unmarshal([]byte(text), &s) == nil && s.State == state
		})
	}
}
