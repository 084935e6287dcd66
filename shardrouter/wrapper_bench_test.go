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
// more than the wrapper: there are several connections of each kind, and as many of
// the driver once more, to tell how far two kinds differ that are the same. It prints
// the mean of their median times, the two ratios, and that of the CPU time which this
// process spent.
func BenchmarkWrapper(b *testing.B) {
	for i, query := range []string{
		"SELECT 1",
		"SELECT seq FROM seq_1_to_100",
		"SELECT id, name, gold, level, guild_id, updated_at FROM (SELECT 1 id, 'ann' name, 2 gold, 3 level, 4 guild_id, NOW() updated_at) p WHERE name = 'ann' AND id = 1",
	} {
		b.Run(strconv.Itoa(i), func(b *testing.B) { benchmarkInTurns(b, query) })
	}
}

// The kinds of connections that take turns.
const (
	bare = iota
	again
	wrapped
	kinds
)

func benchmarkInTurns(b *testing.B, query string) {
	const each, batch = 16, 20
	var conns [kinds][each]*sql.Conn
	router, db := routerOf(b, server.DSN()), bareDB(b)
	defer db.Close()
	for n := range each {
		for _, kind := range []int{bare, again} {
			conn, err := db.Conn(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			conns[kind][n] = conn
		}
		l, err := router.Lease(b.Context(), on("server_1"), "")
		if err != nil {
			b.Fatal(err)
		}
		defer l.Release()
		conns[wrapped][n] = l.Conn()
	}

	var took [kinds][each][]time.Duration
	var cpu [kinds]time.Duration
	for turn := 0; b.Loop(); turn++ {
		for i := range kinds * each {
			kind, n := (i+turn)%kinds, i/kinds
			used := cpuTime(b)
			for range batch {
				start := time.Now()
				if err := readAll(b.Context(), conns[kind][n], query); err != nil {
					b.Fatal(err)
				}
				took[kind][n] = append(took[kind][n], time.Since(start))
			}
			cpu[kind] += cpuTime(b) - used
		}
	}
	var typical [kinds]float64
	for kind := range kinds {
		for _, d := range took[kind] {
			slices.Sort(d)
			typical[kind] += float64(d[len(d)/2]) / each
		}
	}
	driver := (typical[bare] + typical[again]) / 2
	b.ReportMetric(driver, "driver-ns/query")
	b.ReportMetric(typical[wrapped]/driver, "ratio")
	b.ReportMetric(typical[again]/typical[bare], "ratio-of-the-same")
	b.ReportMetric(2*float64(cpu[wrapped])/float64(cpu[bare]+cpu[again]), "cpu-ratio")

	allocs := func(kind int) float64 {
		return testing.AllocsPerRun(100, func() { _ = readAll(b.Context(), conns[kind][0], query) })
	}
	b.ReportMetric(allocs(wrapped)-allocs(bare), "more-allocs/query")
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
