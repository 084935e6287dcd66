package shardrouter_test

import (
	"database/sql"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// BenchmarkWrapper runs the same statement on connections of the driver alone and
// of the wrapper in turns, so that what else the machine does meets both alike.
// Where the kernel puts the thread of the server that serves a connection counts for
// more than the wrapper, so there are several of each. It prints the mean of what
// the fastest tenth of the statements took at most on each of them, which a busy
// machine disturbs least, the ratio of the two, that of the medians, and that of the
// CPU time which this process spent on each.
func BenchmarkWrapper(b *testing.B) {
	for i, query := range []string{
		"SELECT 1",
		"SELECT seq FROM seq_1_to_100",
		"SELECT id, name, gold, level, guild_id, updated_at FROM (SELECT 1 id, 'ann' name, 2 gold, 3 level, 4 guild_id, NOW() updated_at) p WHERE name = 'ann' AND id = 1",
	} {
		b.Run(strconv.Itoa(i), func(b *testing.B) { benchmarkInTurns(b, query) })
	}
}

func benchmarkInTurns(b *testing.B, query string) {
	const pairs, batch = 16, 20
	var both [2][]*sql.Conn
	router, db := routerOf(b, server.DSN()), bareDB(b)
	defer db.Close()
	for range pairs {
		bare, err := db.Conn(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		defer bare.Close()
		l, err := router.Lease(b.Context(), on("server_1"), "")
		if err != nil {
			b.Fatal(err)
		}
		defer l.Release()
		both[0], both[1] = append(both[0], bare), append(both[1], l.Conn())
	}

	var took [2][pairs][]time.Duration
	var cpu [2]time.Duration
	for turn := 0; b.Loop(); turn++ {
		for n := range 2 * pairs {
			kind, pair := n&1^turn&1, n/2
			used := cpuTime(b)
			for range batch {
				start := time.Now()
				if err := readAll(b.Context(), both[kind][pair], query); err != nil {
					b.Fatal(err)
				}
				took[kind][pair] = append(took[kind][pair], time.Since(start))
			}
			cpu[kind] += cpuTime(b) - used
		}
	}
	mean := func(kind int, share float64) (sum float64) {
		for _, d := range took[kind] {
			sum += float64(quantile(d, share)) / pairs
		}
		return sum
	}
	b.ReportMetric(mean(0, 0.1), "bare-ns/query")
	b.ReportMetric(mean(1, 0.1), "wrapped-ns/query")
	b.ReportMetric(mean(1, 0.1)/mean(0, 0.1), "ratio")
	b.ReportMetric(mean(1, 0.5)/mean(0, 0.5), "median-ratio")
	b.ReportMetric(float64(cpu[1])/float64(cpu[0]), "cpu-ratio")

	allocs := func(conn *sql.Conn) float64 {
		return testing.AllocsPerRun(100, func() { _ = readAll(b.Context(), conn, query) })
	}
	b.ReportMetric(allocs(both[1][0])-allocs(both[0][0]), "more-allocs/query")
}

// cpuTime is the CPU time that this process has spent.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// quantile returns what a share of d is shorter than. It sorts d.
func quantile(d []time.Duration, share float64) time.Duration {
	slices.Sort(d)
	return d[int(share*float64(len(d)))]
}
