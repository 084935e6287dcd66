package fleet_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
)

// The benchmarks of this file measure one run each, however often they are told
// to repeat it, at the default interval and settings.

// window is for how long a benchmark looks.
const window = 10 * time.Second

// BenchmarkFrozenShard prints what a shard costs that freezes under 20 players
// with warm connections: the longest that one of them waited for an answer, how
// many got none, and the p99 of ten players of the other shards before and
// during the freeze.
func BenchmarkFrozenShard(b *testing.B) {
	const crowd, neighbours, pause = 20, 10, 100 * time.Millisecond
	f := newFleet(b, plan{calm: true, quiet: true})
	there, others := f.settle(crowd, "server_1")
	for b.Loop() {
		warm, rest := play(there, pause), play(others[:neighbours], pause)
		<-time.After(window)
		b.ReportMetric(ms(warm().longest()), "ms/longest-before")
		b.ReportMetric(ms(rest().quantile(0.99)), "ms/p99-others-before")

		frozen, rest := play(there, pause), play(others[:neighbours], pause)
		f.set(faultproxy.Freeze, "server_1")
		<-time.After(window)
		waited := frozen()
		b.ReportMetric(ms(waited.longest()), "ms/longest-frozen")
		b.ReportMetric(float64(len(waited.bad)), "refused")
		b.ReportMetric(ms(rest().quantile(0.99)), "ms/p99-others-during")
		f.set(faultproxy.Pass, "server_1")
		f.await("server_1", "up")
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// BenchmarkRecoveryUnderACrowd prints what reaches a shard in the first second
// after an outage for whose end 500 players of three instances wait, probes
// included.
func BenchmarkRecoveryUnderACrowd(b *testing.B) {
	p := alone()
	p.calm, p.quiet = true, true
	f := newFleet(b, p)
	for b.Loop() {
		got := f.comeBack(500)
		b.ReportMetric(float64(got.opened)/got.measured.Seconds(), "connects/first-second")
		b.ReportMetric(float64(got.tried)/got.outage.Seconds(), "tries/s-of-outage")
	}
}

// BenchmarkIdleFleet prints what a fleet without players costs a database, by
// the server's own count.
func BenchmarkIdleFleet(b *testing.B) {
	for _, instances := range []int{1, 3, 6} {
		b.Run(fmt.Sprint(instances), func(b *testing.B) {
			server := lab.MariaDB(b)
			f := newFleet(b, plan{
				instances: instances, shards: []string{"server_1"}, dsns: map[string]string{"server_1": server.DSN()},
				calm: true, quiet: true,
			})
			f.join(0) // the tables are there, and the pools have been used
			root := lab.Open(b, server.RootDSN())
			for b.Loop() {
				<-time.After(window) // whatever the start had to do is done
				began, before := time.Now(), counted(b, root)
				<-time.After(window)
				after, took := counted(b, root), time.Since(began).Seconds()
				// The count of the end counts itself.
				b.ReportMetric(float64(after["Questions"]-before["Questions"]-1)/took, "statements/s")
				b.ReportMetric(float64(after["Com_select"]-before["Com_select"])/took, "selects/s")
				b.ReportMetric(float64(after["Connections"]-before["Connections"])/took, "connections/s")
			}
		})
	}
}

// counted is what a server counted since it started.
func counted(t testing.TB, root *sql.DB) map[string]int {
	t.Helper()
	rows, err := root.QueryContext(t.Context(), "SHOW GLOBAL STATUS WHERE Variable_name IN ('Questions', 'Com_select', 'Connections')")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	counts := map[string]int{}
	for rows.Next() {
		var name string
		var count int
		if err := rows.Scan(&name, &count); err != nil {
			t.Fatal(err)
		}
		counts[name] = count
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return counts
}
