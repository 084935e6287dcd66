package metrics_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/goleak"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/metrics"
	"github.com/shardhop/shardhop/shardrouter"
)

func TestMain(m *testing.M) {
	os.Exit(lab.Main(m, func(testing.TB) {}, func() error { return goleak.Find() }))
}

// newCollector returns a collector of a router over the shards.
func newCollector(t *testing.T, shards ...shardrouter.Shard) (*metrics.Collector, *shardrouter.Router) {
	t.Helper()
	c := metrics.New()
	r, err := shardrouter.New(shardrouter.Config{
		Redis: lab.Redis(t).Client(), HealthInterval: 100 * time.Millisecond, HoldTimeout: shardrouter.HoldNone,
		Observer: c.Observe(shardrouter.Observer{}), Shards: shards,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	c.Watch(r)
	return c, r
}

// expect compares some of the metrics, in the text form.
func expect(t *testing.T, c prometheus.Collector, text string, names ...string) {
	t.Helper()
	if err := testutil.CollectAndCompare(c, strings.NewReader(text), names...); err != nil {
		t.Error(err)
	}
}

func TestFiguresOfAShard(t *testing.T) {
	db := lab.MariaDB(t)
	c, r := newCollector(t, shardrouter.Shard{Name: "server_1", DSN: shardrouter.DSN(db.DSN()), MaxConns: 7})
	state := func(s healthcache.State) func() bool {
		return func() bool { return r.Health().View("server_1").State == s }
	}
	lab.Eventually(t, 10*time.Second, "the shard is up", state(healthcache.Up))
	l, err := r.Acquire(t.Context(), "server_1")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Health().Drain(t.Context(), "server_1", "new disks", 0); err != nil {
		t.Fatal(err)
	}
	expect(t, c, `
# HELP shardhop_connections Open connections of the shard's pool, by use.
# TYPE shardhop_connections gauge
shardhop_connections{shard="server_1",use="idle"} 0
shardhop_connections{shard="server_1",use="in_use"} 1
# HELP shardhop_connections_max Bound of the shard's pool.
# TYPE shardhop_connections_max gauge
shardhop_connections_max{shard="server_1"} 7
# HELP shardhop_leases_total Connections lent.
# TYPE shardhop_leases_total counter
shardhop_leases_total{shard="server_1"} 1
# HELP shardhop_shard_drained 1 while an operator wants no players on the shard.
# TYPE shardhop_shard_drained gauge
shardhop_shard_drained{shard="server_1"} 1
# HELP shardhop_shard_alarm 1 while something about the shard needs an operator; the log says what.
# TYPE shardhop_shard_alarm gauge
shardhop_shard_alarm{shard="server_1"} 0
`, "shardhop_connections", "shardhop_connections_max", "shardhop_leases_total", "shardhop_shard_drained", "shardhop_shard_alarm")
	l.Release()

	db.Kill()
	lab.Eventually(t, 10*time.Second, "the shard is down", state(healthcache.Down))
	text, err := testutil.CollectAndFormat(c, expfmt.TypeTextPlain, "shardhop_shard_state")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`shardhop_shard_state{shard="server_1",state="down"} 1`,
		`shardhop_shard_state{shard="server_1",state="up"} 0`,
	} {
		if !strings.Contains(string(text), line) {
			t.Errorf("no line %s in:\n%s", line, text)
		}
	}
}

// Shards of one group of which nothing proves that they hold the same rows.
func TestShardsOfOtherRows(t *testing.T) {
	nowhere := shardrouter.DSN("app:x@tcp(127.0.0.1:1)/game")
	c, _ := newCollector(t, shardrouter.Shard{Name: "server_1", DSN: nowhere}, shardrouter.Shard{Name: "server_2", DSN: nowhere},
		shardrouter.Shard{Name: "alone", DSN: nowhere, Group: "west"})
	expect(t, c, `
# HELP shardhop_shards_of_other_rows Other shards of the group that are not proved to hold the same rows: a player who is rotated there starts on other rows.
# TYPE shardhop_shards_of_other_rows gauge
shardhop_shards_of_other_rows{shard="alone"} 0
shardhop_shards_of_other_rows{shard="server_1"} 1
shardhop_shards_of_other_rows{shard="server_2"} 1
`, "shardhop_shards_of_other_rows")
}

// Names, units and help texts are as Prometheus wants them, and nothing is
// collected twice.
func TestConventions(t *testing.T) {
	c, _ := newCollector(t, shardrouter.Shard{Name: "server_1", DSN: "app:x@tcp(127.0.0.1:1)/game"})
	problems, err := testutil.CollectAndLint(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if n := testutil.CollectAndCount(metrics.New()); n != 0 {
		t.Errorf("%d metrics without a router", n)
	}
}

// What the router tells is counted, and passed on to the application's own
// observer.
func TestObserve(t *testing.T) {
	c := metrics.New()
	var told []string
	o := c.Observe(shardrouter.Observer{
		Attempt: func(a shardrouter.Attempt) { told = append(told, a.Shard) },
		Held:    func(shard string, _ time.Duration, _ error) { told = append(told, shard) },
	})
	o.Attempt(shardrouter.Attempt{Shard: "server_1", Verdict: shardrouter.VerdictUnreachable})
	o.Held("server_2", 2*time.Second, nil)
	o.Held("server_2", time.Minute, shardrouter.ErrHoldOver)
	text, err := testutil.CollectAndFormat(c, expfmt.TypeTextPlain, "shardhop_held_seconds", "shardhop_attempts_failed_total")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`shardhop_attempts_failed_total{shard="server_1",verdict="unreachable"} 1`,
		`shardhop_held_seconds_sum{end="refused",shard="server_2"} 60`,
		`shardhop_held_seconds_bucket{end="released",shard="server_2",le="2.5"} 1`,
	} {
		if !strings.Contains(string(text), line) {
			t.Errorf("no line %s in:\n%s", line, text)
		}
	}
	if want := []string{"server_1", "server_2", "server_2"}; !slices.Equal(told, want) {
		t.Errorf("the application's own observer was told of %v, want %v", told, want)
	}
}
