package chaos_test

import (
	"bytes"
	"cmp"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardhop/shardhop/example-game/internal/app"
	"github.com/shardhop/shardhop/example-game/internal/chaos"
	"github.com/shardhop/shardhop/internal/lab"
)

const (
	// betweenReloads is how long everybody plays on a set of shards.
	betweenReloads = time.Second
	// untilMoved bounds the wait until a change of the shards shows, on the
	// busiest machine.
	untilMoved = 30 * time.Second
)

// TestReload adds shards, removes them, and changes their weights and groups
// under the crowd, by the file. The shards are the members of one cluster, so
// that all of them have every player's rows.
func TestReload(t *testing.T) {
	w := startReloads(t)
	score := w.crowd.Play(func() {
		<-time.After(betweenReloads)
		w.refuse(t, "server_1 server_2 server_3/DSN=app:hunter2@nonsense", "SHARD_SERVER_3_DSN")
		w.refuse(t, "server_1 server_2 server_3/WEIGHT=many", "SHARD_SERVER_3_WEIGHT")
		w.refuse(t, "server_3", "group default would lose its last shard")

		w.reload(t, "server_1/WEIGHT=0 server_2/WEIGHT=0 server_3")
		w.newcomer(t, "default", "server_3")
		<-time.After(betweenReloads)

		w.reload(t, "server_2/WEIGHT=0 server_3")
		w.abandoned(t, "server_1")
		lab.Eventually(t, untilMoved, "the players of the removed shard are on the new one", func() bool { return w.crowd.Shards()["server_3"] > 0 })
		w.newcomer(t, "default", "server_3")
		<-time.After(betweenReloads)

		w.reload(t, "server_1/GROUP=east server_2 server_3")
		w.newcomer(t, "east", "server_1")
		<-time.After(betweenReloads)

		w.reload(t, "server_1/GROUP=east/WEIGHT=0 server_2 server_3/GROUP=east")
		lab.Eventually(t, untilMoved, "all stay in their group", func() bool { return w.crowd.Shards()["server_2"] == players })
		w.newcomer(t, "east", "server_3")
		w.refuse(t, "server_2 server_3", "group east would lose its last shard")

		w.reload(t, "server_2 server_3/GROUP=east")
		w.abandoned(t, "server_1")
		<-time.After(betweenReloads)
	})
	t.Logf("\n%s\n%s", chaos.Header, chaos.Line("shards added and removed by file", 1, &score, w.audit(t)))
	if score.Failed > score.Kinds[starved] || score.Kinds[starved] > score.Requests/100 {
		t.Errorf("%d of %d requests failed: %v", score.Failed, score.Requests, score.Kinds)
	}
	if score.LoggedOut > 0 || score.Stale > 0 {
		t.Errorf("%d requests of nobody, %d reads that came too early", score.LoggedOut, score.Stale)
	}
	if wait := score.Longest(); wait > longestWait {
		t.Errorf("a request took %v", wait)
	}
}

// reloads is a game whose shards a file names.
type reloads struct {
	game      *app.App
	crowd     *chaos.Crowd
	file      string
	servers   map[string]*lab.MariaDBServer // by the shard that each serves
	newcomers int
}

func startReloads(t *testing.T) *reloads {
	t.Helper()
	random := cmp.Or(*seed, rand.Uint64())
	t.Logf("-seed %d", random)
	w := &reloads{file: filepath.Join(t.TempDir(), "shards.env"), servers: map[string]*lab.MariaDBServer{}}
	for i, server := range lab.Galera(t, 3) {
		w.servers[fmt.Sprintf("server_%d", i+1)] = server
	}
	w.write(t, "server_1 server_2")
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	var err error
	w.game, err = app.Start(t.Context(), []string{
		"ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0", "REDIS_URL=" + lab.Redis(t).URL(), "SHARDS_FILE=" + w.file,
	}, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.game.Shutdown)
	lab.Eventually(t, syncTimeout, "both shards are up", func() bool {
		return !slices.ContainsFunc(shardsOf(t, w.game), listed.out)
	})
	if w.crowd, err = chaos.NewCrowd(w.game.URL(), players, random); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.crowd.Close)
	return w
}

// write replaces the file as a whole. A shard of the layout may have settings
// behind its name, "server_1/WEIGHT=0/GROUP=east", and returns the names.
func (w *reloads) write(t *testing.T, layout string) (names []string) {
	t.Helper()
	var lines []string
	for _, shard := range strings.Fields(layout) {
		parts := strings.Split(shard, "/")
		names = append(names, parts[0])
		prefix := "SHARD_" + strings.ToUpper(parts[0]) + "_"
		if !strings.Contains(shard, "DSN=") {
			parts = append(parts, "DSN="+w.servers[parts[0]].DSN())
		}
		for _, setting := range parts[1:] {
			lines = append(lines, prefix+setting)
		}
	}
	lines = append(lines, "SHARDS="+strings.Join(names, ","))
	if err := os.WriteFile(w.file+".new", []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(w.file+".new", w.file); err != nil {
		t.Fatal(err)
	}
	return names
}

// reload has the game go on with the shards of the layout.
func (w *reloads) reload(t *testing.T, layout string) {
	t.Helper()
	names := w.write(t, layout)
	if err := w.game.Reload(t.Context()); err != nil {
		t.Fatalf("reload to %q: %v", layout, err)
	}
	if got := w.names(t); !slices.Equal(got, names) {
		t.Errorf("the shards are %v after a reload to %q", got, layout)
	}
}

// refuse wants a reload to say what is wrong with the layout, and to change
// nothing.
func (w *reloads) refuse(t *testing.T, layout, why string) {
	t.Helper()
	before := w.names(t)
	w.write(t, layout)
	if err := w.game.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("reload to %q: %v, want an error that says %q, and no password", layout, err, why)
	}
	if got := w.names(t); !slices.Equal(got, before) {
		t.Errorf("the shards are %v after a reload that was refused, were %v", got, before)
	}
}

// abandoned waits until no player is on a removed shard, and nobody of the game
// is connected to its server.
func (w *reloads) abandoned(t *testing.T, shard string) {
	t.Helper()
	root := lab.Open(t, w.servers[shard].RootDSN())
	lab.Eventually(t, untilMoved, "nobody is left on "+shard, func() bool {
		return w.crowd.Shards()[shard] == 0 && connected(t, root) == 0
	})
}

// connected counts the connections of the account that the game uses.
func connected(t *testing.T, root *sql.DB) (n int) {
	t.Helper()
	if err := root.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// newcomer registers somebody in a group, who has to come to the shard.
func (w *reloads) newcomer(t *testing.T, group, shard string) {
	t.Helper()
	w.newcomers++
	body := fmt.Sprintf(`{"name":"newcomer-%d","password":"correct horse","realm":%q}`, w.newcomers, group)
	res, err := http.Post(w.game.URL()+"/api/register", "application/json", bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if got := res.Header.Get("X-Shard"); res.StatusCode != http.StatusCreated || got != shard {
		t.Errorf("a newcomer to %s: %d on %q, want 201 on %s", group, res.StatusCode, got, shard)
	}
}

func (w *reloads) names(t *testing.T) (names []string) {
	t.Helper()
	for _, s := range shardsOf(t, w.game) {
		names = append(names, s.Shard)
	}
	return names
}

// audit compares the rows of every member with what the players were told.
func (w *reloads) audit(t *testing.T) (found chaos.Audit) {
	t.Helper()
	for shard, server := range w.servers {
		found = w.crowd.Book().Audit(read(t, lab.Open(t, server.DSN()+"?wsrep_sync_wait=1&timeout=5s")))
		if !found.Clean() {
			t.Errorf("%s: %v", shard, found)
		}
	}
	return found
}
