package shardrouter_test

import (
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// sets reads "a b | c".
func sets(text string) (all [][]string) {
	for set := range strings.SplitSeq(text, "|") {
		if names := strings.Fields(set); len(names) > 0 {
			all = append(all, names)
		}
	}
	return all
}

// shows reads "a:ab b:ab c:": a and b each show the markers of both, and c, which
// was asked as well, shows none.
func shows(text string) map[string]map[string]bool {
	all := make(map[string]map[string]bool)
	for word := range strings.FieldsSeq(text) {
		shard, others, _ := strings.Cut(word, ":")
		all[shard] = make(map[string]bool)
		for _, other := range others {
			all[shard][string(other)] = true
		}
	}
	return all
}

func TestMarkerSets(t *testing.T) {
	tests := []struct {
		before, shows, want string
		gain                bool
		reason              string
	}{
		{"", "a:ab b:ab", "a b | c", true, "two that show each other's, and one that was not asked"},
		{"a b | c", "a:ab b:ab", "a b | c", false, "as before"},
		{"a b c", "a:abc b:abc c:abc", "a b c", false, "as before"},
		{"", "a:a b:ab c:c", "a | b | c", false, "a replica shows its source's, and its source does not show the replica's"},
		{"a b c", "a:a b:b c:c", "a | b | c", false, "they have parted"},
		{"a b c", "a:ab b:ab", "a b c", false, "one that is silent is what it was"},
		{"a b c", "b:bc c:bc", "a b c", false, "likewise the first"},
		{"a b c", "b:b c:c", "a b | c", false, "the rest have parted: the silent one is with one of them only"},
		{"a b c", "a:ab b:ab c:", "a b | c", false, "one that was asked and shows nothing"},
		{"", "a:ab b:abc c:bc", "a b | c", true, "a set is of those that all show each other's"},
		{"", "", "a | b | c", false, "nobody was asked"},
	}
	for _, tt := range tests {
		got, gain := shardrouter.NewMarkerProof(sets(tt.before)...).Sets([]string{"a", "b", "c"}, shows(tt.shows))
		if !reflect.DeepEqual(got, sets(tt.want)) || gain != tt.gain {
			t.Errorf("%q after %q: %v, gain %v; want %s, %v: %s", tt.shows, tt.before, got, gain, tt.want, tt.gain, tt.reason)
		}
	}
	if got, want := shardrouter.Both(shows("a:ab b:ab c:abc"), shows("a:a b:ab d:d")), shows("a:a b:ab"); got["a"]["b"] || !got["b"]["a"] || len(got) != len(want) {
		t.Errorf("two looks together: %v, want %v", got, want)
	}
}

// Shards that are one database at two addresses are copies. Another server is
// not, neither is a replica that would take writes, and neither of them is the
// replica's source. A shard that dies stays the copy that it was; another
// instance of the fleet knows the same.
func TestCopiesAreProvedByMarkers(t *testing.T) {
	pair := lab.MariaDBPair(t)
	lab.Exec(t, pair.Node(1).RootDSN(), "SET GLOBAL read_only=0", "SET GLOBAL gtid_strict_mode=0")
	first, second := faultproxy.New(t, server.Addr()), faultproxy.New(t, server.Addr())
	var log lab.Log
	rdb := lab.Redis(t).Client()
	cfg := shardrouter.Config{
		Copies: shardrouter.CopiesMarker, Redis: rdb, HealthInterval: 100 * time.Millisecond,
		Shards: append([]shardrouter.Shard{
			{Name: "server_1", DSN: dsnAt(first.Addr())}, {Name: "server_2", DSN: dsnAt(second.Addr())},
		}, named("replica", pair.Node(1), "source", pair.Node(0), "other", lab.MariaDB(t))...),
	}
	var routers [2]*shardrouter.Router
	for i := range routers {
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		cfg.Instance = string(rune('a' + i))
		routers[i] = open(t, cfg)
		await(t, routers[i], healthcache.Up, routers[i].Shards()...)
	}
	check := func(when string) {
		t.Helper()
		for _, r := range routers {
			lab.Eventually(t, 20*time.Second, "the copies are known "+when, func() bool { return r.Copies("server_2", "server_1") })
			for _, s := range []string{"replica", "source", "other"} {
				for _, o := range r.Shards() {
					if o != s && r.Copies(s, o) {
						t.Errorf("%s: %s counts as a copy of %s", when, s, o)
					}
				}
			}
		}
	}
	check("at first")
	lab.Eventually(t, 5*time.Second, "the source's marker is on the replica", func() bool {
		var n int
		err := lab.Open(t, pair.Node(1).DSN()).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM shardhop_markers WHERE shard = 'source'").Scan(&n)
		return err == nil && n == 1
	})
	check("once the replica shows its source's marker")

	second.SetMode(faultproxy.Refuse)
	await(t, routers[0], healthcache.Down, "server_2")
	await(t, routers[1], healthcache.Down, "server_2")
	check("after a death")
	if got, err := rdb.Get(t.Context(), "db:copies:default").Result(); err != nil || !strings.Contains(got, `["server_1","server_2"]`) {
		t.Errorf("Redis has %s, %v: want the sets", got, err)
	}
	lab.Eventually(t, 15*time.Second, "it is told", func() bool {
		return strings.Contains(log.String(), "level=ERROR msg=\"not all shards of a group are proved")
	})
}

// A shard that comes back from a death with rows of its own, as a restored clone
// does, is no copy, in no moment after that is known.
func TestMarkersAreShownAnewAfterAReturn(t *testing.T) {
	lab.Exec(t, server.RootDSN(), "CREATE OR REPLACE DATABASE twin", "GRANT ALL ON twin.* TO app@'%'",
		shardrouter.MarkerDDL, "CREATE VIEW twin.shardhop_markers AS SELECT * FROM game.shardhop_markers")
	path := faultproxy.New(t, server.Addr())
	twin := shardrouter.DSN(strings.Replace(string(dsnAt(path.Addr())), "/game", "/twin", 1))
	router := open(t, shardrouter.Config{
		Copies: shardrouter.CopiesMarker, HealthInterval: 100 * time.Millisecond, Logger: quiet(),
		Shards: []shardrouter.Shard{{Name: "server_1", DSN: dsnAt(server.Addr())}, {Name: "server_2", DSN: twin}},
	})
	copies := func() bool { return router.Copies("server_1", "server_2") }
	lab.Eventually(t, 20*time.Second, "they are copies", copies)
	path.SetMode(faultproxy.Refuse)
	await(t, router, healthcache.Down, "server_2")
	if !copies() {
		t.Error("a dead copy is none any more")
	}
	lab.Exec(t, server.RootDSN(), "DROP VIEW twin.shardhop_markers", "CREATE TABLE twin.shardhop_markers AS SELECT * FROM game.shardhop_markers",
		"ALTER TABLE twin.shardhop_markers ADD PRIMARY KEY (shard)")
	path.SetMode(faultproxy.Pass)
	seen := 0
	lab.Eventually(t, 20*time.Second, "it is up, and looked at", func() bool {
		if router.Health().View("server_2").State != healthcache.Up {
			return false
		}
		if copies() {
			t.Fatal("a clone counts as a copy")
		}
		seen++
		return seen > 20
	})
}

// Nothing is said of copies before all of them were looked at.
func TestCopiesByMarkersAreNoAlarm(t *testing.T) {
	var log lab.Log
	told := make(chan [][]string, 10)
	router := open(t, shardrouter.Config{
		Copies: shardrouter.CopiesMarker, HealthInterval: 3 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Observer: shardrouter.Observer{Copies: func(_ string, sets [][]string) { told <- sets }},
		Shards:   []shardrouter.Shard{{Name: "server_1", DSN: dsnAt(server.Addr())}, {Name: "server_2", DSN: dsnAt(server.Addr())}},
	})
	select {
	case sets := <-told:
		if len(sets) != 1 {
			t.Errorf("the first word is %v, want one set:\n%s", sets, log.String())
		}
	case <-time.After(20 * time.Second):
		t.Fatal("told of nothing")
	}
	if !router.Copies("server_1", "server_2") {
		t.Error("they are no copies")
	}
}

// An account that may not write markers.
func TestShardThatTakesNoMarkers(t *testing.T) {
	lab.Exec(t, server.RootDSN(), "CREATE DATABASE IF NOT EXISTS bare",
		"CREATE OR REPLACE USER guest@'%' IDENTIFIED BY 'guest-secret'", "GRANT SELECT ON bare.* TO guest@'%'")
	dsn := shardrouter.DSN(strings.NewReplacer("app:app-secret", "guest:guest-secret", "/game", "/bare").Replace(server.DSN()))
	var log lab.Log
	router := open(t, shardrouter.Config{
		Copies: shardrouter.CopiesMarker, HealthInterval: 50 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Shards: []shardrouter.Shard{{Name: "server_1", DSN: dsn}, {Name: "server_2", DSN: dsn}},
	})
	const line = "no marker can be written"
	lab.Eventually(t, 15*time.Second, "it is told of both", func() bool { return strings.Count(log.String(), line) == 2 })
	if router.Copies("server_1", "server_2") {
		t.Error("they count as copies")
	}
	if !strings.Contains(log.String(), "CREATE TABLE IF NOT EXISTS shardhop_markers") {
		t.Errorf("the log does not say how to mend it:\n%s", log.String())
	}
}

// open makes a router that ends with the test.
func open(t *testing.T, cfg shardrouter.Config) *shardrouter.Router {
	t.Helper()
	router, err := shardrouter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = router.Close() })
	return router
}

// named makes shards of names and servers, given in turn.
func named(pairs ...any) (shards []shardrouter.Shard) {
	for i := 0; i < len(pairs); i += 2 {
		shards = append(shards, shardrouter.Shard{Name: pairs[i].(string), DSN: shardrouter.DSN(pairs[i+1].(*lab.MariaDBServer).DSN())})
	}
	return shards
}
