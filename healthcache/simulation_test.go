//go:build !race

package healthcache

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var full = flag.Bool("full", false, "simulate a thousand instances on a hundred shards, which takes minutes")

// TestSimulation runs fleets through quiet, a death, a recovery, lost probes and
// partitions. The table that it logs stands in docs/health.md:
//
//	go test ./healthcache -run TestSimulation -v -timeout 30m -full
func TestSimulation(t *testing.T) {
	sizes := [][2]int{{3, 3}, {100, 20}}
	if *full {
		sizes = [][2]int{{3, 3}, {30, 100}, {1000, 100}}
	}
	for _, size := range sizes {
		synctest.Test(t, func(t *testing.T) { simulate(t, size[0], size[1]) })
	}
}

func simulate(t *testing.T, instances, shards int) {
	table := &strings.Builder{}
	line := func(what string, format string, args ...any) {
		fmt.Fprintf(table, "| %d × %d | %s | %s |\n", instances, shards, what, fmt.Sprintf(format, args...))
	}
	w := newWorld(instances, shards, 7)
	began := time.Now()
	w.run(6 * time.Second)
	for _, shard := range w.cfg.Shards {
		if !w.all(shard, func(v View) bool { return v.State == Up }) {
			t.Fatalf("%s is not up for all", shard)
		}
	}
	w.run(settling * w.cfg.Interval)
	line("most leases in one hand", "%d", w.mostLeases())
	if most := w.mostLeases(); most > fairPart(shards, instances) {
		t.Errorf("one instance holds %d leases", most)
	}

	quiet(t, w, line)
	death(t, w, line)
	loss(t, w, line)
	partitions(t, w, line)
	t.Logf("%v of virtual time\n%s", time.Since(began).Round(time.Second), table)
}

// settling is for how many intervals the leases are spread.
const settling = 50

type liner func(what, format string, args ...any)

// quiet measures what it costs that nothing happens.
func quiet(t *testing.T, w *world, line liner) {
	const intervals = 10
	w.spent()
	w.probes = 0
	w.run(intervals * w.cfg.Interval)
	total, most := w.spent()
	per := float64(len(w.instances) * intervals)
	commands, probes := float64(total.commands)/per, float64(w.probes)/intervals/float64(len(w.cfg.Shards))
	line("probes per shard and second", "%.2f", probes)
	line("Redis commands per instance and interval", "%.2f (the busiest instance %.1f)", commands, float64(most.commands)/intervals)
	line("bytes per instance and interval without readings", "%.0f", float64(total.bytes-total.reading)/per)
	line("bytes with a reading of all keys in ten intervals", "%.0f (the busiest instance %.0f)", float64(total.bytes)/per, float64(most.bytes)/intervals)
	if probes > 1.2 {
		t.Errorf("%.2f probes per shard and second", probes)
	}
	if bytes := float64(total.bytes) / per; commands > 3 || bytes > 550 {
		t.Errorf("%.2f commands and %.0f bytes per instance and interval", commands, bytes)
	}
}

// death has a shard die that one instance after the other uses, and come back.
func death(t *testing.T, w *world, line liner) {
	const shard = "server_2"
	w.afterProbe(shard)
	w.dead[shard] = true
	took, ok := w.until(10*time.Second, func() bool {
		return w.all(shard, func(v View) bool { return v.State == Down && !v.Contested })
	})
	if !ok {
		t.Errorf("a death is not known to all after %v", took)
	}
	line("until all agree on a death, nobody using the shard", "%v", took)
	w.run(6 * time.Second)
	w.afterProbe(shard)
	w.dead[shard] = false
	took, ok = w.until(10*time.Second, func() bool { return w.all(shard, func(v View) bool { return v.State == Up }) })
	if !ok {
		t.Errorf("a recovery is not known to all after %v", took)
	}
	line("until all agree on its recovery", "%v", took)

	const used = "server_3"
	w.afterProbe(used)
	w.dead[used] = true
	for _, in := range w.instances {
		w.after(time.Duration(w.rand.Int64N(int64(time.Second))), func() {
			in.board.suspect(used, "refused")
			in.wakeProbers()
		})
	}
	took, ok = w.until(10*time.Second, func() bool {
		return w.all(used, func(v View) bool { return v.State == Down && !v.Contested })
	})
	if !ok {
		t.Errorf("a death is not known to all after %v", took)
	}
	line("until all agree on a death, every instance using the shard", "%v", took)
	w.dead[used] = false
	w.run(5 * time.Second)
}

// loss drops every twentieth probe.
func loss(t *testing.T, w *world, line liner) {
	const seconds = 20
	w.falseDowns, w.contested = 0, 0
	clear(w.redis.downs)
	w.loss, w.probes = 0.05, 0
	w.run(seconds * time.Second)
	w.loss = 0
	line(fmt.Sprintf("false downs in %d s of 5 %% probe loss", seconds), "%d shared, %d believed, %d contested",
		len(w.redis.downs), w.falseDowns, w.contested)
	line("probes per shard and second meanwhile", "%.2f", float64(w.probes)/seconds/float64(len(w.cfg.Shards)))
	if len(w.redis.downs)+w.falseDowns > 0 {
		t.Errorf("false downs were shared: %v", w.redis.downs)
	}
	w.run(5 * time.Second)
}

// partitions cuts one third of the instances off, the prober's, then others.
func partitions(t *testing.T, w *world, line liner) {
	cuts := []struct {
		from string
		cut  func(in *simInstance, off bool)
	}{
		{"the shards", func(in *simInstance, off bool) { in.noShards = off }},
		{"Redis", func(in *simInstance, off bool) { in.noRedis = off }},
		{"both", func(in *simInstance, off bool) { in.noShards, in.noRedis = off, off }},
	}
	thirds := 3
	if len(w.instances) > 100 {
		thirds = 1 // the prober's: only there is anybody to be fooled
	}
	for _, c := range cuts {
		w.falseDowns, w.contested = 0, 0
		clear(w.redis.downs)
		for third := range thirds {
			first := (w.holder(w.cfg.Shards[0]) + third) % 3
			for i := first; i < len(w.instances); i += 3 {
				c.cut(w.instances[i], true)
			}
			w.run(6 * time.Second)
			for i := first; i < len(w.instances); i += 3 {
				c.cut(w.instances[i], false)
			}
			w.run(5 * time.Second)
		}
		line("false downs while a third is cut off from "+c.from, "%d shared, %d believed, %d contested", len(w.redis.downs), w.falseDowns, w.contested)
		if len(w.redis.downs)+w.falseDowns > 0 {
			t.Errorf("cut off from %s: %v shared, %v believed", c.from, w.redis.downs, w.falseDowns)
		}
	}
}
