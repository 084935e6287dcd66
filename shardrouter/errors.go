package shardrouter

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The occasions. Match them with errors.Is; the evidence is in the types.
var (
	// ErrUnavailable: no shard that the route may use could give a connection.
	// The error is an [*UnavailableError].
	ErrUnavailable = errors.New("shardrouter: no shard available")
	// ErrBusy: the shard is up, but full; try again later. It may be in an
	// [*UnavailableError].
	ErrBusy = errors.New("shardrouter: shard busy")
	// ErrNestedLease: the context already holds a lease of this shard, and no
	// other connection is free; waiting for one could wait for itself.
	ErrNestedLease = errors.New("shardrouter: the request already holds a connection of this shard and no other is free: use that one, or raise MaxConns")
	// ErrUnknownShard: no shard of that name is configured.
	ErrUnknownShard = errors.New("shardrouter: unknown shard")
	// ErrUnknownGroup: no shard of that group is configured.
	ErrUnknownGroup = errors.New("shardrouter: unknown group")
	// ErrOutcomeUnknown: the transaction, or the write outside of one, may or
	// may not have been committed, and nothing can prove which. The error is an
	// [*OutcomeError] or a [*StatementError].
	ErrOutcomeUnknown = errors.New("shardrouter: outcome unknown")
	// ErrConnLost: the connection went, and nothing of what was under way stays.
	// The error is a [*StatementError].
	ErrConnLost = errors.New("shardrouter: connection lost")
	// ErrTooLarge: the statement, or one parameter of it, is larger than the server
	// takes (max_allowed_packet), or the DSN (maxAllowedPacket). It did not run, and
	// would not on another run either. The error is a [*StatementError].
	ErrTooLarge = errors.New("shardrouter: statement too large")
	// ErrKeyReused: the idempotency key was used for another request. Nothing
	// was run.
	ErrKeyReused = errors.New("shardrouter: the idempotency key was used for another request")
	// ErrKeyInProgress: another call with the same idempotency key is under
	// way, and did not end in time. Nothing was run; try again later.
	ErrKeyInProgress = errors.New("shardrouter: another request with this idempotency key is under way")
	// ErrNoOutcomeTable: a key needs the table of outcome rows, and it is
	// missing and cannot be made; the text names the statement that makes it.
	ErrNoOutcomeTable = errors.New("shardrouter: no table of outcome rows")
	// ErrAnswerTooLong: the answer to keep with a key is longer than a
	// mebibyte. The transaction was rolled back.
	ErrAnswerTooLong = errors.New("shardrouter: answer too long to keep")
	// ErrTxEnded: the server had already ended the transaction; the statement
	// was not sent.
	ErrTxEnded = errors.New("shardrouter: the server has ended this transaction")
	// ErrTxOpen: a transaction is open on the connection already. A second one
	// would commit the first; run both in one, or one after the other.
	ErrTxOpen = errors.New("shardrouter: a transaction is already open on this connection")
	// ErrImplicitCommit: the statement, such as DDL or BEGIN, would commit the
	// transaction in which it stands; it was not sent. In a [*StatementError] it
	// was: a procedure has committed the transaction, or rolled it back.
	ErrImplicitCommit = errors.New("shardrouter: the statement would commit its transaction")
	// ErrRolledBack: the transaction was rolled back by the server as often as
	// it was run, or could not be run again in time. Nothing of it was
	// committed; try again later.
	ErrRolledBack = errors.New("shardrouter: transaction rolled back")
	// ErrReleased: the connection was given back inside its transaction.
	ErrReleased = errors.New("shardrouter: the lease was released inside its transaction")
	// ErrRowsOpen: rows of an earlier query are still open on the connection;
	// the statement was not sent. Close them, or read them to the end, first.
	ErrRowsOpen = errors.New("shardrouter: rows are still open on this connection")
	// ErrShardDown: the shard was found down while the lease was out, and its
	// connection was cut.
	ErrShardDown = errors.New("shardrouter: shard went down")
	// ErrHoldOver: the shard has had no writable node for longer than requests
	// are held. It may be in an [*UnavailableError].
	ErrHoldOver = errors.New("shardrouter: the shard has been out for longer than requests are held")
	// ErrHoldFull: as many requests as may be held wait for the shard already.
	// It may be in an [*UnavailableError].
	ErrHoldFull = errors.New("shardrouter: too many requests are held for the shard already")
	// ErrClosed: the router is closed, or holds nobody any more since the
	// process is about to end.
	ErrClosed = errors.New("shardrouter: closed")
)

// errCommittedInPart: the first call with a key left its row without an answer.
var errCommittedInPart = errors.New("the body of the first call with this key was committed in part, and did not come to its answer")

// What a first run shows.
var (
	errKeyWithoutAnswer = errors.New("shardrouter: TxOptions.Key is set for Tx, which has no answer to give to a repeat: use TxAnswer")
	errKeyWithoutRow    = errors.New("shardrouter: TxOptions.Key needs an outcome row: leave ReadOnly and NoOutcomeRow off")
)

// UnavailableError carries every attempt that a request made. Its text names
// shards and nodes and is meant for the log, never for a client.
type UnavailableError struct {
	// Group is the group that was searched.
	Group string
	// Shard is the one that was asked for by name, as by [Router.Acquire]; empty
	// when any of the group would have done.
	Shard string
	// Attempts in the order they were made; none when every shard was known
	// to be out of service.
	Attempts []Attempt
	// Cause is ErrUnavailable or ErrBusy.
	Cause error
}

func (e *UnavailableError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v (", e.Cause)
	if e.Shard != "" {
		fmt.Fprintf(&b, "shard %s of ", e.Shard)
	}
	fmt.Fprintf(&b, "group %s)", e.Group)
	for _, a := range e.Attempts {
		fmt.Fprintf(&b, "; %s", a)
	}
	return b.String()
}

// Unwrap gives the cause and the error of every attempt.
func (e *UnavailableError) Unwrap() []error {
	errs := []error{e.Cause}
	for _, a := range e.Attempts {
		if a.Err != nil {
			errs = append(errs, a.Err)
		}
	}
	return errs
}

// String tells the attempt in one line, without any secret.
func (a Attempt) String() string {
	name := a.Shard
	if a.Node != "" {
		name += " at " + a.Node
	}
	return fmt.Sprintf("%s: %s after %v: %v", name, a.Verdict, a.Duration.Round(time.Millisecond), a.Err)
}

// RolledBackError is the evidence of an [ErrRolledBack].
type RolledBackError struct {
	Shard string
	Runs  int   // of the body
	Err   error // of the last run
}

func (e *RolledBackError) Error() string {
	return fmt.Sprintf("%v %d times (shard %s): %v", ErrRolledBack, e.Runs, e.Shard, e.Err)
}

// Unwrap gives ErrRolledBack and the evidence.
func (e *RolledBackError) Unwrap() []error { return []error{ErrRolledBack, e.Err} }

// OutcomeError is the evidence of an [ErrOutcomeUnknown].
type OutcomeError struct {
	Shard string
	Err   error // what answered COMMIT, or stood in for the answer
}

func (e *OutcomeError) Error() string {
	return fmt.Sprintf("%v (shard %s): %v", ErrOutcomeUnknown, e.Shard, e.Err)
}

// Unwrap gives ErrOutcomeUnknown and the evidence.
func (e *OutcomeError) Unwrap() []error { return []error{ErrOutcomeUnknown, e.Err} }
