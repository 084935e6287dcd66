package shardrouter_test

import (
	"database/sql"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// BenchmarkWrapper runs the same statement on a connection of the driver alone
// and on one of the wrapper in turns, so that what else the machine does meets
// both alike. It prints what the fastest tenth of the statements of both took at
// most, which a busy machine disturbs least, the ratio of the two, that of the
// medians, and that of the CPU time which this process spent on each.
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
	l, err := routerOf(b, server.DSN()).Lease(b.Context(), on("server_1"), "")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Release()
	db := bareDB(b)
	defer db.Close()
	bare, err := db.Conn(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer bare.Close()
	conns := [2]*sql.Conn{bare, l.Conn()}

	const batch = 20
	var took [2][]time.Duration
	var cpu [2]time.Duration
	for turn := 0; b.Loop(); turn++ {
		for i := range 2 {
			i ^= turn & 1
			used := userTime(b)
			for range batch {
				start := time.Now()
				if err := readAll(b.Context(), conns[i], query); err != nil {
					b.Fatal(err)
				}
				took[i] = append(took[i], time.Since(start))
			}
			cpu[i] += userTime(b) - used
		}
	}
	ratio := func(share float64) float64 {
		return float64(quantile(took[1], share)) / float64(quantile(took[0], share))
	}
	b.ReportMetric(float64(quantile(took[0], 0.1)), "bare-ns/query")
	b.ReportMetric(float64(quantile(took[1], 0.1)), "wrapped-ns/query")
	b.ReportMetric(ratio(0.1), "ratio")
	b.ReportMetric(ratio(0.5), "median-ratio")
	b.ReportMetric(float64(cpu[1])/float64(cpu[0]), "cpu-ratio")

	allocs := func(conn *sql.Conn) float64 {
		return testing.AllocsPerRun(100, func() { _ = readAll(b.Context(), conn, query) })
	}
	b.ReportMetric(allocs(l.Conn())-allocs(bare), "more-allocs/query")
}

// userTime is the CPU time that this process has spent outside of the kernel.
func userTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano())
}

// quantile returns what a share of d is shorter than. It sorts d.
func quantile(d []time.Duration, share float64) time.Duration {
	slices.Sort(d)
	return d[int(share*float64(len(d)))]
}
