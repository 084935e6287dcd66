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
// both alike. It prints the medians of both, their ratio, and that of the CPU time
// which this process spent on each.
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

	const batch = 20
	var took, cpu [2][]time.Duration
	for b.Loop() {
		for i, conn := range []*sql.Conn{bare, l.Conn()} {
			start, used := time.Now(), userTime(b)
			for range batch {
				if err := readAll(b.Context(), conn, query); err != nil {
					b.Fatal(err)
				}
			}
			cpu[i] = append(cpu[i], userTime(b)-used)
			took[i] = append(took[i], time.Since(start))
		}
	}
	bareMedian, median := middle(took[0]), middle(took[1])
	b.ReportMetric(float64(bareMedian)/batch, "bare-ns/query")
	b.ReportMetric(float64(median)/batch, "wrapped-ns/query")
	b.ReportMetric(float64(median)/float64(bareMedian), "ratio")
	b.ReportMetric(float64(sum(cpu[1]))/float64(sum(cpu[0])), "cpu-ratio")

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

func middle(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func sum(d []time.Duration) (total time.Duration) {
	for _, x := range d {
		total += x
	}
	return total
}
