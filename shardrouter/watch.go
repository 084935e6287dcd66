package shardrouter

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/shardhop/shardhop/healthcache"
)

// requestEvidence passes on what requests find out. The pools, which hold it,
// exist before the cache does, but are not used before New returns.
type requestEvidence struct{ r *Router }

func (e requestEvidence) Suspect(shard, reason string) { e.r.health.Suspect(shard, reason) }
func (e requestEvidence) Succeeded(shard string)       { e.r.health.Succeeded(shard) }
func (e requestEvidence) Drained(shard string) bool    { return drained(e.r.health.View(shard)) }
func (e requestEvidence) Copies(a, b string) bool      { return e.r.Copies(a, b) }

func (e requestEvidence) Writer(shard string) (healthcache.Writer, bool) {
	return e.r.health.Writer(shard)
}

func (e requestEvidence) WriterRead(shard string) time.Time { return e.r.health.WriterRead(shard) }

func (e requestEvidence) NodeDrained(shard, addr string) (healthcache.NodeDrain, bool) {
	return e.r.health.NodeDrained(shard, addr)
}

func (e requestEvidence) MoveWriter(ctx context.Context, shard string, from, to healthcache.Writer) (healthcache.Writer, error) {
	return e.r.health.MoveWriter(ctx, shard, from, to)
}

func (e requestEvidence) Pace(shard string) (pace, bool) {
	if !usable(e.r.health.View(shard)) {
		return pace{}, false
	}
	share := float64(e.r.cfg.Ramp) / float64(e.r.health.Instances())
	return pace{share: share, phase: rand.Float64()}, true //nolint:gosec // spreads load, guards nothing
}

// watch suspects the shards on which a statement goes without an answer for
// too long, ends what runs on drained nodes for too long, and reports which
// shards are copies. It looks at all of them every
// now and then, so that no statement needs a timer.
func (r *Router) watch(ctx context.Context) {
	ticker := time.NewTicker(suspectAfter / 5)
	defer ticker.Stop()
	copies := copiesReport{r: r, told: make(map[string]toldCopies)}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for shard, m := range r.layout.Load().members {
			if m.pool.succession != nil {
				m.pool.succession.drained(time.Now())
			}
			if m.pool.overdue(suspectAfter) {
				r.health.Suspect(shard, "no answer to a statement after "+suspectAfter.String())
			}
		}
		copies.look(time.Now())
	}
}

// suspectIfStuck is called when a probe is slow. By itself that may be load; if
// statements of requests go without an answer too, they shall not wait for a
// periodic probe's whole time.
func (r *Router) suspectIfStuck(p *pool) {
	if p.waitingFor(suspectAfter) {
		r.health.Suspect(p.name, "neither a statement nor a probe is answered")
	}
}
