package shardrouter

import (
	"context"
	"database/sql"
)

// Lease is the loan of one connection. It is made for one goroutine at a time;
// Release may be called from any.
type Lease struct{}

// Conn returns the connection. It is valid until Release.
func (l *Lease) Conn() *sql.Conn { return nil }

// Shard names the shard of the connection.
func (l *Lease) Shard() string { return "" }

// Context returns a child of ctx that knows of this lease (see
// ErrNestedLease) and ends with it.
func (l *Lease) Context(ctx context.Context) context.Context { return ctx }

// Release gives the connection back. What the holder left open is ended with
// the lease's context; rows or a transaction that stay open all the same are
// reported, and their connection is cut and never lent again. It is idempotent
// and does not block for longer than the watchdog's time.
func (l *Lease) Release() {}

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
	// MaxAttempts bounds how often the body runs. Default 4.
	MaxAttempts int
}

// Tx runs fn in a transaction on a lease of src, and commits it when fn
// returns nil. When the connection was lost before COMMIT was sent, or the
// server rolled the transaction back (deadlock), fn runs again, on another
// lease if need be. When COMMIT was sent and its outcome cannot be known, the
// error is ErrOutcomeUnknown.
func Tx(ctx context.Context, src Source, opts TxOptions, fn TxFunc) error { return nil }
