package chaos_test

import (
	"cmp"
	"database/sql"
	"flag"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardhop/shardhop/example-game/internal/app"
	"github.com/shardhop/shardhop/example-game/internal/chaos"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
)

var (
	rounds = flag.Int("rounds", 1, "rounds of each fault")
	seed   = flag.Uint64("seed", 0, "seed of all that is random; 0 for another one each time")
	only   = flag.String("fault", "", "the one fault to cause, by its name in the table; all when empty")
	table  = flag.String("table", "", "file between whose marks the table is written")
	most   = flag.Duration("most", longestWait, "the longest that a request may wait")
)

const (
	players = 20
	// longestWait is no promise: it is what nothing may exceed on the busiest
	// machine. The table has what it was, and `make chaos` holds it to less.
	longestWait = 30 * time.Second
	// syncTimeout bounds the wait for a node that was mended.
	syncTimeout = 90 * time.Second
)

// node is one of the cluster's, as the game reaches it.
type node struct {
	shard  string
	server *lab.MariaDBServer
	proxy  *faultproxy.Proxy
	rows   *sql.DB // reads what the cluster has
}

// faults are what happens to a node, and for how long. Each lasts longer than
// the cluster needs to go on without the node.
var faults = []struct {
	name        string
	strike, end func(n node)
	lasts       time.Duration
}{
	{"`kill -9`", func(n node) { n.server.Kill() }, func(n node) { n.server.Start() }, 3 * time.Second},
	{"orderly stop", func(n node) { n.server.Stop() }, func(n node) { n.server.Start() }, 3 * time.Second},
	{"freeze", func(n node) { n.server.Freeze() }, func(n node) { n.server.Thaw() }, 8 * time.Second},
	{"network cut", func(n node) { n.proxy.SetMode(faultproxy.Drop) }, func(n node) { n.proxy.SetMode(faultproxy.Pass) }, 8 * time.Second},
}

// starved is the failure of a request whose session Redis did not give within a
// second. Nobody breaks Redis here: it comes of a machine that has more to do
// than it can. A few are told in the table, and do not fail the test.
const starved = "503 session_unavailable"

func TestNothingIsLostOrDoubled(t *testing.T) {
	random := cmp.Or(*seed, rand.Uint64())
	t.Logf("-seed %d", random)
	l := startLab(t, random)
	lines := []string{chaos.Header}
	for _, f := range faults {
		if *only != "" && *only != f.name {
			continue
		}
		var score chaos.Score
		var audit chaos.Audit
		for range *rounds {
			score.Add(l.round(t, f.strike, f.end, f.lasts))
			found := l.audit(t)
			audit.Lost += found.Lost
			audit.Doubled += found.Doubled
			audit.Sum += found.Sum
			if !found.Clean() {
				t.Errorf("%s: %v", f.name, found)
			}
		}
		if score.Failed > score.Kinds[starved] || score.Kinds[starved] > score.Requests/100 {
			t.Errorf("%s: %d of %d requests failed: %v", f.name, score.Failed, score.Requests, score.Kinds)
		}
		if score.Stale > 0 {
			t.Errorf("%s: %d reads came too early", f.name, score.Stale)
		}
		if wait := score.Longest(); wait > *most {
			t.Errorf("%s: a request took %v", f.name, wait)
		}
		lines = append(lines, chaos.Line(f.name, *rounds, &score, audit))
	}
	t.Logf("\n%s", strings.Join(lines, "\n"))
	if *table != "" && !t.Failed() {
		writeTable(t, *table, strings.Join(lines, "\n"))
	}
}

// world is the game and all that it runs on.
type world struct {
	game  *app.App
	nodes map[string]node
	crowd *chaos.Crowd
	rand  *rand.Rand
}

func startLab(t *testing.T, random uint64) *world {
	w := &world{nodes: map[string]node{}, rand: rand.New(rand.NewPCG(random, random))}
	environ := []string{"ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0", "REDIS_URL=" + lab.Redis(t).URL()}
	var shards []string
	for i, server := range lab.Galera(t, 3) {
		shard := "server_" + string(rune('1'+i))
		proxy := faultproxy.New(t, server.Addr())
		rows := lab.Open(t, server.DSN()+"?wsrep_sync_wait=1&timeout=5s")
		rows.SetMaxIdleConns(0)
		w.nodes[shard] = node{shard, server, proxy, rows}
		shards = append(shards, shard)
		environ = append(environ, "SHARD_"+strings.ToUpper(shard)+"_DSN="+server.DSNAt(proxy.Addr()))
	}
	var err error
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	if w.game, err = app.Start(t.Context(), append(environ, "SHARDS="+strings.Join(shards, ",")), log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.game.Shutdown)
	w.awaitUp(t)
	if w.crowd, err = chaos.NewCrowd(w.game.URL(), players, random); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.crowd.Close)
	return w
}

// round breaks the node of some player at a random moment, mends it and waits
// until it is in sync, while everybody plays.
func (w *world) round(t *testing.T, strike, end func(node), lasts time.Duration) chaos.Score {
	return w.crowd.Play(func() {
		<-time.After(time.Duration(w.rand.Int64N(int64(time.Second))))
		victim := w.nodes[w.crowd.Shard()]
		strike(victim)
		<-time.After(lasts)
		end(victim)
		w.awaitUp(t)
	})
}

// awaitUp waits until the cluster is whole and the game uses all of it.
func (w *world) awaitUp(t *testing.T) {
	t.Helper()
	for _, n := range w.nodes {
		lab.Eventually(t, syncTimeout, n.shard+" is in sync", func() bool { return inSync(n.rows) })
	}
	lab.Eventually(t, syncTimeout, "the game uses all shards", func() bool { return w.allUp(t) })
}

func inSync(db *sql.DB) bool {
	var state string
	var size int
	const query = "SELECT s.variable_value, n.variable_value FROM information_schema.global_status s, information_schema.global_status n" +
		" WHERE s.variable_name = 'wsrep_local_state_comment' AND n.variable_name = 'wsrep_cluster_size'"
	err := db.QueryRow(query).Scan(&state, &size)
	return err == nil && state == "Synced" && size == 3
}

// allUp reports whether the game would use every shard.
func (w *world) allUp(t *testing.T) bool {
	t.Helper()
	shards := shardsOf(t, w.game)
	return len(shards) == len(w.nodes) && !slices.ContainsFunc(shards, listed.out)
}

// audit compares the rows of every node with what the players were told.
func (w *world) audit(t *testing.T) (worst chaos.Audit) {
	t.Helper()
	var rows map[string]int64
	for _, n := range w.nodes {
		rows = read(t, n.rows)
		if found := w.crowd.Book().Audit(rows); !found.Clean() {
			t.Logf("%s: %v", n.shard, found)
			worst = found
		}
	}
	w.crowd.Book().Settle(rows)
	return worst
}

func read(t *testing.T, db *sql.DB) map[string]int64 {
	t.Helper()
	rows, err := db.Query("SELECT name, gold FROM players")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	gold := map[string]int64{}
	for rows.Next() {
		var name string
		var has int64
		if err := rows.Scan(&name, &has); err != nil {
			t.Fatal(err)
		}
		gold[name] = has
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return gold
}

// writeTable puts text between the marks of a file.
func writeTable(t *testing.T, path, text string) {
	t.Helper()
	const begin, end = "<!-- table -->\n", "\n<!-- end -->"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table: want the lines %q and %q", path, begin, end)
	}
	if err := os.WriteFile(path, []byte(head+begin+text+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}
