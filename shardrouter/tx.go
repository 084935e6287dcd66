package shardrouter

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math/rand/v2"
	"time"
)

// Source lends the leases on which [Tx] runs.
type Source interface {
	// Lease returns the lease to run on.
	Lease(ctx context.Context) (*Lease, error)
	// Lost takes back a lease whose connection is gone, so that the next call
	// of Lease gives another.
	Lost(l *Lease)
}

// TxFunc is the body of a transaction. It may run more than once, and must
// have no other effect than its statements.
type TxFunc func(ctx context.Context, tx *sql.Tx) error

// TxOptions configures [Tx]. The zero value is the default.
type TxOptions struct {
	// Isolation of the transaction. Default: the server's.
	Isolation sql.IsolationLevel
	// ReadOnly makes it a read-only transaction.
	ReadOnly bool
	// MaxAttempts bounds how often the body runs. Default 10.
	MaxAttempts int
}

const (
	defaultTxAttempts = 10
	// The pause before a body runs again after a deadlock: random, so that
	// those who met do not meet again, and growing from the first to the last.
	firstPause, lastPause = 2 * time.Millisecond, 100 * time.Millisecond
)

// Tx runs fn in a transaction on a lease of src, and commits it when fn
// returns nil. When the connection was lost before COMMIT was sent, or the
// server rolled the transaction back (deadlock), fn runs again, on another
// lease if need be, and after a pause; ErrRolledBack when that was in vain, in
// an [*RolledBackError]. When COMMIT was sent and its outcome cannot be known,
// the error is an [*OutcomeError], and nothing is run again. Every other error
// of fn rolls the transaction back and is returned as it is.
//
// Statements that would end the transaction are refused with
// ErrImplicitCommit, and a transaction within the transaction with ErrTxOpen.
func Tx(ctx context.Context, src Source, opts TxOptions, fn TxFunc) error {
	if opts.MaxAttempts <= 0 {
		opts.MaxAttempts = defaultTxAttempts
	}
	for n := 1; ; n++ {
		lease, err := src.Lease(ctx)
		if err != nil {
			return err
		}
		end := lease.runTx(ctx, opts, fn)
		if end.lost {
			src.Lost(lease)
		}
		if !end.again {
			return end.err
		}
		if !end.lost {
			sleep(ctx, pause(n))
		}
		if n == opts.MaxAttempts || ctx.Err() != nil {
			return &RolledBackError{Shard: lease.Shard(), Runs: n, Err: errors.Join(end.err, ctx.Err())}
		}
	}
}

// pause is the time before run n+1.
func pause(n int) time.Duration {
	most := min(firstPause<<n, lastPause)
	return most/2 + rand.N(most/2)
}

// txEnd is how one run of a transaction ended.
type txEnd struct {
	err   error
	again bool // nothing of it was committed, and another run may succeed
	lost  bool // the connection is of no more use
}

func (l *Lease) runTx(ctx context.Context, opts TxOptions, fn TxFunc) txEnd {
	if !l.Alive() {
		return txEnd{err: driver.ErrBadConn, again: true, lost: true}
	}
	tx, err := l.conn.BeginTx(ctx, &sql.TxOptions{Isolation: opts.Isolation, ReadOnly: opts.ReadOnly})
	if err != nil {
		return l.endOf(err, l.pool.classify(err, occasion{phase: phaseStatement, callerDone: ctx.Err() != nil}))
	}
	// Without effect after Commit; otherwise also when fn panics. A connection
	// that cannot roll back is dead, and the server rolls back by itself.
	defer func() { _ = tx.Rollback() }()
	err = fn(ctx, tx)
	if l.released.Load() {
		return txEnd{err: errors.Join(ErrReleased, err), lost: true}
	}
	if err != nil {
		_ = tx.Rollback()
		return l.endOfBody(ctx, opts, err)
	}
	return l.endOfCommit(ctx, opts, tx.Commit())
}

// endOfBody judges an error of fn. Nothing was committed, so fn runs again if
// the connection went under it, even where its error hides that. An error that
// only looks like a lost connection, such as one of fn's own I/O, is fn's own.
func (l *Lease) endOfBody(ctx context.Context, opts TxOptions, err error) txEnd {
	if ctx.Err() != nil || isContextError(err) {
		return txEnd{err: err}
	}
	if errors.Is(err, ErrTxEnded) {
		return txEnd{err: err, again: true}
	}
	v := l.pool.classify(err, occasion{phase: phaseStatement, readOnlyTx: opts.ReadOnly})
	if v == VerdictStatement || v == VerdictLost {
		v = VerdictStatement
		if l.server.lost.Load() {
			v = VerdictLost
		}
	}
	return l.endOf(err, v)
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
		return txEnd{err: err, again: ctx.Err() == nil && l.server.lost.Load(), lost: true}
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
	return txEnd{err: &OutcomeError{Shard: l.Shard(), Err: err}, lost: true}
}
