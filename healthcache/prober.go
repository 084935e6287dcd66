package healthcache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// prober owns the probing of one shard: one goroutine, one probe at a time, so
// that a frozen shard delays no other and collects no heap of probes.
type prober struct {
	board *board
	probe ProbeFunc
	know  *knowledge
	// accuse has witnesses called, without waiting for them.
	accuse func()
	// confirmed is when Redis last confirmed the record of the shard's writer;
	// zero: there is none, or it never did.
	confirmed func() time.Time
}

// run carries out the rounds that are due or asked for, until ctx is done.
func (p *prober) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		r, wait := p.board.next(p.know, p.confirmed())
		if r != nil {
			p.carryOut(ctx, r)
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-p.know.wake:
		case <-timer.C:
		}
	}
}

// carryOut probes until the round is decided. What a probe finds while the
// cache closes counts for nothing.
func (p *prober) carryOut(ctx context.Context, r *round) {
	for {
		found, rtt := p.probeOnce(ctx, r)
		if ctx.Err() != nil {
			return
		}
		again, accuse := p.board.conclude(p.know, r, found, rtt)
		if accuse {
			p.accuse()
		}
		if !again {
			return
		}
	}
}

func (p *prober) probeOnce(ctx context.Context, r *round) (Result, time.Duration) {
	ctx, cancel := p.board.open(ctx, p.know, r)
	defer cancel()
	began := time.Now()
	found := sanitize(p.probe(ctx, p.know.shard))
	rtt := time.Since(began)
	if found.State == Down && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		found.Reason = fmt.Sprintf("no answer within %v", rtt.Round(time.Millisecond))
	}
	return found, rtt
}

// sanitize makes a result fit to be kept and shared, whatever the probe said.
func sanitize(r Result) Result {
	switch r.State {
	case Up, Down, ReadOnly, Busy, Misconfigured:
	default:
		r = Result{State: Down, Reason: fmt.Sprintf("the probe gave no verdict (%.32q)", r.State)}
	}
	r.Reason, r.Alarm = clip(r.Reason), clip(r.Alarm)
	r.Nodes = slices.Clone(r.Nodes[:min(len(r.Nodes), maxNodes)])
	for i := range r.Nodes {
		r.Nodes[i].Cluster = clip(r.Nodes[i].Cluster)
	}
	return r
}
