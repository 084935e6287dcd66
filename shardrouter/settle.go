package shardrouter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// settle finds out what became of a run whose COMMIT got no certain answer, by
// a transaction of its own that inserts the same row, deletes it again and is
// committed:
//
//   - The insert finds the key there: the run was committed.
//   - All of it goes through: the run was not committed, and never will be. On
//     the same server the insert waits for whatever the run still does; on
//     another member of its cluster one of the two is ordered first, and the
//     other is refused for it.
//
// So the body does not run again while an earlier run is in doubt, and what it
// leaves in variables is always of the run that was committed. Where nothing
// can be found out within limit, the doubt is the end.
func (t *transaction) settle(ctx context.Context, row *outcome, doubt txEnd, limit time.Duration) txEnd {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		lease, err := t.src.Lease(ctx)
		switch {
		case err != nil && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrBusy):
			return row.unsettled(doubt, err)
		case err == nil && !lease.proves(row):
			return row.unsettled(doubt, fmt.Errorf("shard %s does not hold the same rows", lease.Shard()))
		case err == nil:
			t.layGhosts(ctx, lease)
			end := lease.settle(ctx, row, doubt)
			if end.lost {
				t.lose(ctx, lease, ctx.Err() != nil)
			}
			if !end.unknown {
				return end
			}
			err = end.err
		}
		if !sleep(ctx, lastPause) {
			return row.unsettled(doubt, err)
		}
	}
}

// settleTime bounds the search for what became of a COMMIT: a shard that is held
// for is waited for, since it may come back and tell.
func (p *pool) settleTime() time.Duration {
	if p.cfg.HoldTimeout == HoldNone || p.shard.Load().OnFailure == OnFailureFail {
		return p.cfg.AcquireTimeout
	}
	return p.cfg.AcquireTimeout + p.cfg.HoldTimeout
}

// unsettled is the end of a run that nothing can prove.
func (o *outcome) unsettled(doubt txEnd, cause error) txEnd {
	return txEnd{err: &OutcomeError{Shard: o.shard, Err: errors.Join(doubt.err, cause)}}
}

// proves reports whether an insert on this lease meets what row's run did.
func (l *Lease) proves(row *outcome) bool {
	if l.pool.outcomes.name != row.table {
		return false
	}
	if l.Shard() == row.shard {
		return l.server.node == row.node || l.server.writer.after(row.writer)
	}
	return l.holdsRowsOf(row.shard)
}

// holdsRowsOf reports whether the lease's shard is proved to hold the rows of
// another; see Router.Copies.
func (l *Lease) holdsRowsOf(shard string) bool { return l.pool.evidence.Copies(l.Shard(), shard) }

// settle makes one try at finding out; unknown: in vain.
func (l *Lease) settle(ctx context.Context, row *outcome, doubt txEnd) txEnd {
	tx, err := l.conn.BeginTx(ctx, nil)
	if err != nil {
		return l.undecided(err)
	}
	defer func() { _ = tx.Rollback() }()
	_, err = tx.ExecContext(ctx, row.insertSQL())
	if hasNumber(err, erDupEntry) {
		return l.committed(ctx, tx, row, doubt)
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, row.deleteSQL())
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return l.undecided(err)
	}
	return txEnd{err: causeOf(doubt.err), again: true}
}

// causeOf is what came of a COMMIT, without the doubt in which it was.
func causeOf(doubt error) error {
	if commit, ok := errors.AsType[*commitError](doubt); ok {
		return commit.err
	}
	return doubt
}

// committed is the end of a run whose row is there: its own answer, or that of
// another call with the same key, if that one was faster.
func (l *Lease) committed(ctx context.Context, tx *sql.Tx, row *outcome, doubt txEnd) txEnd {
	if !row.keyed {
		return txEnd{answer: doubt.answer}
	}
	found, err := row.read(ctx, tx)
	if err != nil {
		return l.undecided(err)
	}
	if string(found.run) == string(row.run[:]) {
		return txEnd{answer: doubt.answer}
	}
	return row.repeated(found)
}

// undecided is the end of a try that err cut short.
func (l *Lease) undecided(err error) txEnd {
	v := l.pool.classify(err, occasion{phase: phaseStatement})
	return txEnd{err: err, unknown: true, lost: v != VerdictRolledBack || !l.Alive()}
}

// stopWaiting ends the wait for another call with the same key. The wait's own
// connection is gone, and what it left on the server is ended by way of a new
// one. If only another server can give that, or the shard's writer was moved
// meanwhile, be it away and back, the key is tried there.
func (t *transaction) stopWaiting(ctx context.Context, row *outcome, end txEnd) txEnd {
	lease, err := t.src.Lease(ctx)
	if err != nil {
		return txEnd{err: err}
	}
	t.layGhosts(ctx, lease)
	if lease.server.writer != row.writer { // the node was waited for, no other call
		return txEnd{err: end.err, again: true, lost: true}
	}
	return txEnd{err: end.err}
}
