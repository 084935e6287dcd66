package shardrouter

import "database/sql/driver"

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
		return &commitError{err: err, sent: t.conn.wire.sentSince(mark)}
	}
	return nil
}

func (t *serverTx) Rollback() (err error) {
	defer t.close(&err)
	return t.tx.Rollback()
}

// close is deferred. A driver that panics on the answer to a COMMIT has sent
// it, and nobody knows what became of it.
func (t *serverTx) close(err *error) {
	if p := recover(); p != nil {
		*err = &commitError{err: t.conn.broken(p), sent: true}
	}
	t.conn.tx = txState{}
	t.conn.uses.end()
}

// commitError is a failed COMMIT with the one fact that decides what it means:
// whether it was sent.
type commitError struct {
	err  error
	sent bool
}

func (e *commitError) Error() string { return e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }
