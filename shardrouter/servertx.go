package shardrouter

import (
	"database/sql/driver"
	"errors"
)

// serverTx is a transaction on a serverConn.
type serverTx struct {
	tx   driver.Tx
	conn *serverConn
}

// Commit sends COMMIT, unless the server has ended the transaction already: a
// COMMIT would then confirm nothing and hide it.
func (t *serverTx) Commit() (err error) {
	defer t.close(&err)
	if t.conn.tx.ended {
		_ = t.tx.Rollback()
		return ErrTxEnded
	}
	if t.conn.wire.hungUp() {
		t.conn.wire.cut()
	}
	mark := t.conn.wire.mark()
	if err := t.tx.Commit(); err != nil {
		return &commitError{err: err, sent: t.conn.wire.sentSince(mark), readOnly: t.conn.tx.readOnly}
	}
	return nil
}

func (t *serverTx) Rollback() (err error) {
	defer t.close(&err)
	return t.tx.Rollback()
}

// close is deferred. A driver that panics on the answer to a COMMIT has sent
// it, and nobody knows what became of it. After any other error the transaction
// may still be open on the server.
func (t *serverTx) close(err *error) {
	if p := recover(); p != nil {
		*err = &commitError{err: t.conn.broken(p), sent: true}
	}
	for _, stmt := range t.conn.tx.closing {
		_ = stmt.Close() // if the connection is gone, so is the statement
	}
	if *err != nil {
		t.conn.spent = true
	}
	t.conn.tx = txState{}
	t.conn.uses.end()
}

// commitError is a failed COMMIT with the facts that decide what it means.
type commitError struct {
	err      error
	sent     bool
	readOnly bool // the transaction was
}

func (e *commitError) Error() string { return e.err.Error() }

// Unwrap gives the occasion and the evidence; see [StatementError.Unwrap].
func (e *commitError) Unwrap() []error {
	occasion := ErrOutcomeUnknown
	switch p := e.progress(); {
	case p == RolledBack && e.sent: // the server's certain answer
		return []error{e.err}
	case p != Unknown:
		occasion = ErrConnLost
	}
	if errors.Is(e.err, driver.ErrBadConn) {
		return []error{occasion}
	}
	return []error{occasion, e.err}
}

// progress says what is known of the transaction.
func (e *commitError) progress() Progress {
	if !e.sent {
		return RolledBack
	}
	switch classify(e.err, occasion{phase: phaseCommit}) {
	case VerdictRolledBack, VerdictReadOnly:
		return RolledBack
	}
	if e.readOnly {
		return Sent
	}
	return Unknown
}
