package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/shardrouter"
)

// states are all values of the label state.
var states = [...]healthcache.State{
	healthcache.Unknown, healthcache.Up, healthcache.Suspect, healthcache.Down, healthcache.ReadOnly,
	healthcache.Busy, healthcache.Misconfigured, healthcache.Draining,
}

// Collector is a [prometheus.Collector] of one router. Make it with [New]. Safe
// for use by several goroutines; a scrape reads snapshots and asks neither Redis
// nor a database.
type Collector struct {
	attempts *prometheus.CounterVec
	held     *prometheus.HistogramVec

	router atomic.Pointer[shardrouter.Router]
}

// New returns a collector that gives nothing until [Collector.Watch] names its
// router.
func New() *Collector {
	return &Collector{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shardhop_attempts_failed_total",
			Help: "Failed tries to get a connection of a shard, by what the error meant.",
		}, []string{"shard", "verdict"}),
		held: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "shardhop_held_seconds",
			Help:    "How long requests were held for a shard that could not be written to, by how it ended.",
			Buckets: []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60},
		}, []string{"shard", "end"}),
	}
}

// Watch has the collector give the figures of a router; of the last one, if it
// is called again.
func (c *Collector) Watch(r *shardrouter.Router) { c.router.Store(r) }

// Observe returns an observer that counts failed attempts and the time that
// requests were held, and passes everything on to next. It belongs into the
// router's Config.
func (c *Collector) Observe(next shardrouter.Observer) shardrouter.Observer {
	o := next
	o.Attempt = func(a shardrouter.Attempt) {
		c.attempts.WithLabelValues(a.Shard, a.Verdict.String()).Inc()
		if next.Attempt != nil {
			next.Attempt(a)
		}
	}
	o.Held = func(shard string, waited time.Duration, err error) {
		end := "released"
		if err != nil {
			end = "refused"
		}
		c.held.WithLabelValues(shard, end).Observe(waited.Seconds())
		if next.Held != nil {
			next.Held(shard, waited, err)
		}
	}
	return o
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range poolFigures {
		ch <- f.desc
	}
	for _, d := range [...]*prometheus.Desc{descState, descDrained, descAlarm, descNode, descWriter, descOtherRows, descConnections} {
		ch <- d
	}
	c.attempts.Describe(ch)
	c.held.Describe(ch)
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.attempts.Collect(ch)
	c.held.Collect(ch)
	r := c.router.Load()
	if r == nil {
		return
	}
	stats := r.Stats()
	size := map[string]int{} // of each group
	for _, s := range stats {
		size[s.Group]++
	}
	for _, s := range stats {
		collectPool(ch, s)
		collectHealth(ch, s, r.Health().View(s.Shard))
		others := size[s.Group] - 1 - len(s.Copies)
		ch <- prometheus.MustNewConstMetric(descOtherRows, prometheus.GaugeValue, float64(others), s.Shard)
	}
}

func collectPool(ch chan<- prometheus.Metric, s shardrouter.Stats) {
	for _, f := range poolFigures {
		ch <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(s), s.Shard)
	}
	ch <- prometheus.MustNewConstMetric(descConnections, prometheus.GaugeValue, float64(s.InUse), s.Shard, "in_use")
	ch <- prometheus.MustNewConstMetric(descConnections, prometheus.GaugeValue, float64(s.Idle), s.Shard, "idle")
}

func collectHealth(ch chan<- prometheus.Metric, s shardrouter.Stats, v healthcache.View) {
	tell := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	tell(descDrained, truth(v.Drained), s.Shard)
	tell(descAlarm, truth(s.Alarm != ""), s.Shard)
	if s.Writer != "" && s.WriterEpoch > 0 {
		tell(descWriter, float64(s.WriterEpoch), s.Shard, s.Writer)
	}
	for _, state := range states {
		tell(descState, truth(v.State == state), s.Shard, nameOf(state))
		for _, n := range v.Nodes {
			tell(descNode, truth(n.State == state), s.Shard, n.Addr, nameOf(state))
		}
	}
}

// nameOf is the state as a label: an unknown one has no text of its own.
func nameOf(s healthcache.State) string {
	if s == healthcache.Unknown {
		return "unknown"
	}
	return string(s)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
