package shardrouter

import (
	"context"
	"database/sql"
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
// have no other effect than its statements. What it leaves in variables is
// that of its last run, which is the one that was committed.
type TxFunc func(ctx context.Context, tx *sql.Tx) error

// AnswerFunc is a [TxFunc] that also returns the answer to keep; see
// [TxAnswer].
type AnswerFunc func(ctx context.Context, tx *sql.Tx) ([]byte, error)

// TxOptions configures [Tx] and [TxAnswer]. The zero value is the default.
type TxOptions struct {
	// Isolation of the transaction. Default: the server's.
	Isolation sql.IsolationLevel
	// ReadOnly makes it a read-only transaction, which writes no outcome row.
	ReadOnly bool
	// MaxAttempts bounds how often the body runs. Default 10.
	MaxAttempts int
	// Key is the client's idempotency key, of any length; for TxAnswer only.
	// Default: none, and every call is one of its own.
	Key string
	// Scope says whose key it is, such as the player's name. The same key in
	// another scope, or another group of shards, is another key.
	Scope string
	// Request is what the key was used for, such as method, path and body. The
	// same key with another request is ErrKeyReused. It is kept as a hash.
	Request []byte
	// NoOutcomeRow saves the row, which costs a statement per transaction. An
	// unknown outcome then stays unknown. It cannot be had with a Key.
	NoOutcomeRow bool
}

// Answer is what [TxAnswer] returns.
type Answer struct {
	// Body is what the body of the transaction returned when it was committed.
	Body []byte
	// Repeated reports that an earlier call with the same key has committed,
	// and that this one had no effect.
	Repeated bool
}

const (
	defaultTxAttempts = 10
	// The pause before a body runs again after a deadlock: random, so that
	// those who met do not meet again, and growing from the first to the last.
	firstPause, lastPause = 2 * time.Millisecond, 100 * time.Millisecond
)

// Tx runs fn in a transaction on a lease of src, and commits it when fn
// returns nil. When the connection was lost before COMMIT was sent, or the
// server rolled the transaction back (deadlock), fn runs again, whatever it made of
// that error, on another lease if need be, and after a pause; ErrRolledBack when
// that was in vain, in an [*RolledBackError]. Every other error of fn rolls the
// transaction back and is returned as it is.
//
// The first statement of the transaction inserts an outcome row. When COMMIT
// was sent and no certain answer came, that row proves what became of it: Tx
// returns nil if it was committed, and runs fn again if it was not. Where
// nothing can prove it, because no server with the same rows can be reached
// within Config.AcquireTimeout, and a hold where the shard is worth one, or there
// is no outcome row, the error is an
// [*OutcomeError], and nothing is run again.
//
// Statements that would end the transaction are refused with
// ErrImplicitCommit, each of several in one text, and a transaction within the
// transaction with ErrTxOpen. What a procedure does is seen only behind it: a CALL
// or EXECUTE that has ended the transaction gives ErrImplicitCommit, in a
// [*StatementError], and later statements ErrTxEnded. After that, after a CALL
// without an answer, and after a COMMIT of its own, the body does not run again,
// and where it would, the error is an [*OutcomeError].
// A Key in opts is an error: a repeat needs the answer, which TxAnswer keeps.
func Tx(ctx context.Context, src Source, opts TxOptions, fn TxFunc) error {
	if opts.Key != "" {
		return errKeyWithoutAnswer
	}
	_, err := TxAnswer(ctx, src, opts, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		return nil, fn(ctx, tx)
	})
	return err
}

// TxAnswer is [Tx] for a body that returns an answer. With a Key, the answer is
// kept beside it, in the same transaction and for Config.OutcomeRetention: a
// later call with the same Scope, Key and Request returns it and does not run
// fn. Another Request is ErrKeyReused. While another call with the key is under
// way, this one waits for it, five seconds at most or half the time that ctx
// leaves, and then is ErrKeyInProgress. So that one who repeats a slow key does not
// use up the pool, only one call waits so on a shard; further ones wait a second for
// their turn, and from the ninth on not at all. An answer of more than a mebibyte is
// ErrAnswerTooLong.
//
// An error of fn is not kept: the key is free again. Not so where something in fn
// has committed by itself, such as a procedure: that call is an [*OutcomeError] or
// an [*StatementError] with ErrImplicitCommit, and every later one with the key an
// [*OutcomeError], since a part of the first is there, and no answer. Do not use a
// key with a body that commits.
func TxAnswer(ctx context.Context, src Source, opts TxOptions, fn AnswerFunc) (Answer, error) {
	if opts.Key != "" && (opts.ReadOnly || opts.NoOutcomeRow) {
		return Answer{}, errKeyWithoutRow
	}
	if opts.MaxAttempts <= 0 {
		opts.MaxAttempts = defaultTxAttempts
	}
	t := &transaction{src: src, opts: opts, fn: fn}
	return t.run(ctx)
}

// transaction is one call of TxAnswer, used by one goroutine.
type transaction struct {
	src  Source
	opts TxOptions
	fn   AnswerFunc
	// ghosts are the threads of servers whose connections were lost.
	ghosts []ghost
}

func (t *transaction) run(ctx context.Context) (Answer, error) {
	for n := 1; ; n++ {
		lease, end := t.once(ctx)
		if !end.again {
			return end.answer, end.err
		}
		if !end.lost {
			sleep(ctx, pause(n))
		}
		if n == t.opts.MaxAttempts || ctx.Err() != nil {
			return Answer{}, &RolledBackError{Shard: lease.Shard(), Runs: n, Err: errors.Join(end.err, ctx.Err())}
		}
	}
}

// once takes a lease, runs the body on it, and clears up what is left in doubt.
func (t *transaction) once(ctx context.Context) (*Lease, txEnd) {
	lease, err := t.src.Lease(ctx)
	if err != nil {
		return nil, txEnd{err: err}
	}
	t.layGhosts(ctx, lease)
	leave, err := lease.takeTurn(ctx, t.opts)
	if err != nil {
		return lease, txEnd{err: err}
	}
	defer leave()
	row, end := t.runOn(ctx, lease)
	if end.noTable {
		end = lease.makeTable(ctx, t.opts, end)
		if end.again && !end.lost {
			row, end = t.runOn(ctx, lease)
			end.again = end.again || end.noTable // dropped in this moment
		}
	}
	return lease, t.clearUp(ctx, lease, row, end)
}

// clearUp takes what a run has left: its connection, its doubt, its ghosts.
func (t *transaction) clearUp(ctx context.Context, lease *Lease, row *outcome, end txEnd) txEnd {
	givenUp := end.err != nil && ctx.Err() != nil
	lay := !isUnknown(end.err) && (givenUp || end.waited || lease.server.isLate())
	switch {
	case end.lost, givenUp && lease.isCutInside():
		t.lose(ctx, lease, lay)
	case lay:
		t.layInPlaceOf(ctx, lease)
	}
	switch {
	case end.unknown && row != nil:
		end = t.settle(ctx, row, end, lease.pool.settleTime())
		lease.pool.settled(settlementOf(end))
	case isUnknown(end.err):
		lease.pool.settled(SettledUnknown)
	case end.waited && end.lost:
		end = t.stopWaiting(ctx, row, end)
	}
	return end
}

// runOn runs the body on a lease, and returns its outcome row, if it has one.
func (t *transaction) runOn(ctx context.Context, lease *Lease) (*outcome, txEnd) {
	row, err := lease.newOutcome(t.opts)
	if err != nil {
		return nil, txEnd{err: err}
	}
	return row, lease.runTx(ctx, t.opts, row, t.fn)
}

// pause is the time before run n+1.
func pause(n int) time.Duration {
	most := min(firstPause<<min(n, 10), lastPause)
	return most/2 + rand.N(most/2)
}
