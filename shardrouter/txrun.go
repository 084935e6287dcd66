package shardrouter

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
)

// txEnd is how one run of a transaction ended.
type txEnd struct {
	answer  Answer
	err     error
	again   bool // nothing of it was committed, and another run may succeed
	lost    bool // the connection is of no more use
	unknown bool // COMMIT was sent, and no certain answer came
	waited  bool // the time for another call with the same key is over
	noTable bool // there is no table for the outcome row
}

// runTx runs fn once, and inserts row before, unless it is nil.
func (l *Lease) runTx(ctx context.Context, opts TxOptions, row *outcome, fn AnswerFunc) txEnd {
	if !l.Alive() {
		return txEnd{err: driver.ErrBadConn, again: true, lost: true}
	}
	tx, err := l.conn.BeginTx(ctx, &sql.TxOptions{Isolation: opts.Isolation, ReadOnly: opts.ReadOnly})
	if err = withContextEnd(ctx, err); err != nil {
		return l.endOf(err, l.pool.classify(err, occasion{phase: phaseStatement, callerDone: ctx.Err() != nil}))
	}
	// Without effect after Commit; otherwise also when fn panics. A connection
	// that cannot roll back is dead, and the server rolls back by itself.
	defer func() { _ = tx.Rollback() }()
	if row != nil {
		if end, open := l.insert(ctx, tx, row); !open {
			return end
		}
	}
	body, err := fn(ctx, tx)
	if l.released.Load() {
		return txEnd{err: errors.Join(ErrReleased, err), lost: true}
	}
	stays := l.server.stays.Load()
	if err == nil && row != nil {
		err = row.keep(ctx, tx, body)
	}
	if err != nil {
		_ = tx.Rollback()
		return l.ifStays(stays, l.endOfBody(ctx, opts, err))
	}
	end := l.ifStays(stays, l.endOfCommit(ctx, opts, tx.Commit()))
	end.answer = Answer{Body: body}
	return end
}

// ifStays is the end of a run whose body may have called a procedure that did not
// stay inside, have ended the transaction itself, or have gone on after its end.
// The first part may be committed, outcome row and all, or be rolled back and the
// rest not. So no row proves anything, nothing runs again, and a COMMIT without an
// answer, or by the body, stays unknown.
func (l *Lease) ifStays(stays bool, end txEnd) txEnd {
	if !stays || !end.again && !end.unknown && !errors.Is(end.err, sql.ErrTxDone) {
		return end
	}
	end.again, end.unknown = false, false
	if !errors.Is(end.err, ErrOutcomeUnknown) {
		end.err = &OutcomeError{Shard: l.Shard(), Err: end.err}
	}
	return end
}

// endOfBody judges an error of fn. Nothing was committed, so fn runs again if
// the connection went under it, or the server has rolled it back, even where its
// error hides that. An error that only looks like a lost connection, such as one of
// fn's own I/O, is fn's own.
func (l *Lease) endOfBody(ctx context.Context, opts TxOptions, err error) txEnd {
	err = withContextEnd(ctx, err)
	if ctx.Err() != nil || isContextError(err) {
		return txEnd{err: err}
	}
	if errors.Is(err, ErrTxEnded) {
		return txEnd{err: err, again: true}
	}
	v := l.pool.classify(err, occasion{phase: phaseStatement, readOnlyTx: opts.ReadOnly})
	if v == VerdictStatement || v == VerdictLost {
		v = l.server.under()
	}
	return l.endOf(err, v)
}

// under is what has become of the present transaction, of which an error of its body
// says nothing.
func (c *serverConn) under() Verdict {
	switch {
	case c.lost.Load():
		return VerdictLost
	case c.rolledBack.Load():
		return VerdictRolledBack
	}
	return VerdictStatement
}

// withContextEnd is err, in which the end of ctx is found if ctx has ended and the
// connection was lost, or the transaction was over: that closes the one and ends
// the other, and may be what did it.
func withContextEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, ErrConnLost) || errors.Is(err, sql.ErrTxDone)) {
		return errors.Join(ctx.Err(), err)
	}
	return err
}

// endOf is the end of a run that did not come to its COMMIT.
func (l *Lease) endOf(err error, v Verdict) txEnd {
	switch v {
	case VerdictRolledBack:
		return txEnd{err: err, again: true}
	case VerdictLost, VerdictReadOnly:
		return txEnd{err: err, again: true, lost: true}
	default:
		return txEnd{err: err}
	}
}

// endOfCommit judges the answer to COMMIT, or its absence. A transaction that
// only read leaves nothing in doubt.
func (l *Lease) endOfCommit(ctx context.Context, opts TxOptions, err error) txEnd {
	if err == nil {
		return txEnd{}
	}
	if errors.Is(err, ErrTxEnded) {
		return txEnd{err: err, again: true}
	}
	var commit *commitError
	if !errors.As(err, &commit) { // database/sql did not come to COMMIT
		return txEnd{err: withContextEnd(ctx, err), again: ctx.Err() == nil && l.server.lost.Load(), lost: true}
	}
	v := VerdictLost
	if commit.sent {
		v = l.pool.classify(commit.err, occasion{phase: phaseCommit})
		if v == VerdictLost { // the socket knows better than the error
			v = VerdictUnknown
		}
	}
	if v != VerdictRolledBack {
		l.pool.suspectFor(v, err)
	}
	if v == VerdictUnknown && opts.ReadOnly {
		v = VerdictLost
	}
	if v == VerdictRolledBack || v == VerdictReadOnly || v == VerdictLost {
		return l.endOf(err, v)
	}
	return txEnd{err: &OutcomeError{Shard: l.Shard(), Err: err}, lost: true, unknown: true}
}
