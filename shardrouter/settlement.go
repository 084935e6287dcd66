package shardrouter

import "errors"

// Settlement is what was found out of a [Tx] whose COMMIT got no certain answer.
type Settlement string

// What may become of a COMMIT that got no certain answer.
const (
	// SettledCommitted: it was committed; Tx returned its result.
	SettledCommitted Settlement = "committed"
	// SettledRolledBack: it was not committed, and the body ran again, or another
	// call with the same key was faster.
	SettledRolledBack Settlement = "rolled_back"
	// SettledUnknown: nothing could prove either; Tx returned an [*OutcomeError].
	SettledUnknown Settlement = "unknown"
)

// settlementOf is what settle came to.
func settlementOf(end txEnd) Settlement {
	switch {
	case isUnknown(end.err):
		return SettledUnknown
	case end.again, end.answer.Repeated, errors.Is(end.err, ErrKeyReused):
		return SettledRolledBack
	}
	return SettledCommitted
}

func isUnknown(err error) bool {
	_, unknown := errors.AsType[*OutcomeError](err)
	return unknown
}

// settled counts what became of a COMMIT on this shard.
func (p *pool) settled(s Settlement) {
	switch s {
	case SettledCommitted:
		p.counter.committed.Add(1)
	case SettledRolledBack:
		p.counter.rolledBack.Add(1)
	case SettledUnknown:
		p.counter.unknown.Add(1)
	}
	if f := p.cfg.Observer.Settled; f != nil {
		f(p.name, s)
	}
}
