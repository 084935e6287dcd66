package shardrouter

import (
	"context"
	"errors"
	"time"
)

// failed turns an error of lend into what the search for a lease needs: the
// caller's own end passes as it is and says nothing about the shard.
func (p *pool) failed(ctx context.Context, e *era, start time.Time, err error) error {
	a := Attempt{Shard: p.name, Node: nodeOf(err), Duration: time.Since(start), Err: err}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ErrNestedLease):
		return err
	case errors.Is(err, ErrBusy):
		a.Verdict = VerdictBusy
	case e.ended():
		a.Verdict, a.Err = VerdictUnreachable, ErrShardDown
	case errors.Is(err, errBehind):
		a.Verdict = VerdictUnreachable
	case errors.Is(err, context.DeadlineExceeded):
		a.Verdict, a.Err = VerdictUnreachable, errAttemptTimeout
	default:
		a.Verdict = p.classify(err, occasion{phase: phaseConnect})
	}
	p.report(a)
	return &attemptError{a}
}

// report counts a failed attempt and raises the suspicion that it gives.
func (p *pool) report(a Attempt) {
	if f := p.cfg.Observer.Attempt; f != nil {
		f(a)
	}
	if a.Verdict == VerdictBusy {
		p.counter.busy.Add(1)
		return
	}
	p.counter.failures.Add(1)
	p.suspectFor(a.Verdict, a.Err)
}

// suspectFor raises the suspicion that an error gives.
func (p *pool) suspectFor(v Verdict, err error) {
	p.evidence.Suspect(p.name, v.String()+": "+reason(err))
}

// classify gives the verdict on err, with the configured override.
func (p *pool) classify(err error, at occasion) Verdict {
	v := classify(err, at)
	if p.cfg.Classify != nil {
		v = p.cfg.Classify(err, v)
	}
	return v
}

// attemptError is a failed attempt on its way to an UnavailableError.
type attemptError struct{ Attempt }

func (e *attemptError) Error() string { return e.String() }
func (e *attemptError) Unwrap() error { return e.Err }
