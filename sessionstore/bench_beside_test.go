package sessionstore_test

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/lab"
)

// duel is what a benchmark measures by turns, so that what else the machine
// does slows all: the same request of two managers, and what no manager can do
// without.
type duel struct {
	ours, scs   func()
	ping, fetch func() // a round trip, and one that reads the hash of the session
}

// BenchmarkBesideScs measures the steady request beside scs with gob and a store
// of the usual kind: of one client alone, and of many at once. It reports the
// medians of both and their ratio; docs/sessions.md has the figures.
func BenchmarkBesideScs(b *testing.B) {
	server := lab.Redis(b)
	for _, n := range sessionSizes {
		for _, word := range []string{"off", "on"} {
			name, idle := fmt.Sprintf("%d values/idle timeout %s", n, word), idleTimeouts[word]
			b.Run(name+"/alone", func(b *testing.B) { benchAlone(b, newDuel(b, server, n, idle)) })
			b.Run(name+"/at once", func(b *testing.B) { benchAtOnce(b, newDuel(b, server, n, idle)) })
		}
	}
}

func newDuel(b *testing.B, server *lab.RedisServer, n int, idle time.Duration) duel {
	rdb := benchClient(b, server)
	d := duel{ours: steady(b, ours(rdb, idle), n), scs: steady(b, stock(rdb, idle), n)}
	key := rdb.Keys(b.Context(), "session:*").Val()[0]
	d.ping = func() { rdb.Ping(b.Context()) }
	d.fetch = func() { rdb.HGetAll(b.Context(), key) }
	return d
}

// benchAlone measures one client, which waits for each answer.
func benchAlone(b *testing.B, d duel) {
	var took, theirs, ping, fetch []time.Duration
	for b.Loop() {
		took = append(took, timed(d.ours))
		theirs = append(theirs, timed(d.scs))
		ping = append(ping, timed(d.ping))
		fetch = append(fetch, timed(d.fetch))
	}
	report(b, took, theirs)
	b.ReportMetric(micros(median(ping)), "ping-µs")
	b.ReportMetric(micros(median(fetch)), "hgetall-µs")
}

const (
	clients = 16
	volley  = 25 // requests of each client in a turn
)

// benchAtOnce measures many clients, which leave no processor idle: the time of
// a request is then the inverse of requests per second.
func benchAtOnce(b *testing.B, d duel) {
	var took, theirs []time.Duration
	var cpu, theirCPU time.Duration
	for b.Loop() {
		start := cpuTime(b)
		took = append(took, timed(func() { atOnce(d.ours) })/(clients*volley))
		middle := cpuTime(b)
		theirs = append(theirs, timed(func() { atOnce(d.scs) })/(clients*volley))
		cpu, theirCPU = cpu+middle-start, theirCPU+cpuTime(b)-middle
	}
	report(b, took, theirs)
	b.ReportMetric(float64(cpu)/float64(theirCPU), "cpu-ratio")
}

func atOnce(request func()) {
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			for range volley {
				request()
			}
		})
	}
	running.Wait()
}

func report(b *testing.B, took, theirs []time.Duration) {
	mine, other := median(took), median(theirs)
	b.ReportMetric(micros(mine), "µs")
	b.ReportMetric(micros(other), "scs-µs")
	b.ReportMetric(float64(mine)/float64(other), "ratio")
	b.ReportMetric(0, "ns/op")
}

func timed(request func()) time.Duration {
	start := time.Now()
	request()
	return time.Since(start)
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }

// cpuTime is the processor time that this process, without Redis, has taken.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
