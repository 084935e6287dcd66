package shardrouter

import (
	"database/sql/driver"
	"errors"
	"time"
)

// serverTx is a transaction on a serverConn.
type serverTx struct {
	tx   driver.Tx
	conn *serverConn
	done <-chan struct{} // closed when the time for it is over; nil: never
}

// Commit sends COMMIT, unless the server has ended the transaction already: a
// COMMIT would then confirm nothing and hide it. What a node confirms that was
// overtaken meanwhile is unknown, and settled on the new writer.
func (t *serverTx) Commit() (err error) {
	defer t.close(&err)
	if t.conn.tx.ended {
		if t.tx.Rollback() != nil {
			t.conn.wire.cut()
		}
		return ErrTxEnded
	}
	if t.conn.wire.hungUp() || t.conn.era.ended() || !t.conn.tx.readOnly && t.conn.overtaken(t.done) {
		t.conn.wire.cut()
	}
	stayed := t.conn.stays.Swap(true)
	mark := t.conn.wire.mark()
	err = t.send()
	if err == nil && !t.conn.tx.readOnly && t.conn.overtaken(t.done) {
		err = errOvertaken
	}
	if err != nil {
		return &commitError{err: err, sent: t.conn.wire.sentSince(mark), readOnly: t.conn.tx.readOnly, stays: stayed}
	}
	return nil
}

// send sends COMMIT, which counts as a statement under way until it is answered.
func (t *serverTx) send() error {
	t.conn.uses.begin(time.Now())
	defer t.conn.uses.done()
	return t.tx.Commit()
}

func (t *serverTx) Rollback() (err error) {
	defer t.close(&err)
	return t.tx.Rollback()
}

// close is deferred. A driver that panics on the answer to a COMMIT has sent
// it, and nobody knows what became of it. After any other error the transaction
// may still be open on the server, as on a Galera member without a majority,
// which refuses ROLLBACK as well. The next BEGIN would commit it, whoever sends
// it, so there is none.
func (t *serverTx) close(err *error) {
	if p := recover(); p != nil {
		*err = &commitError{err: t.conn.broken(p), sent: true}
	}
	if *err != nil && !leavesNoTransaction(*err) {
		t.conn.wire.cut()
	}
	t.conn.spent = t.conn.spent || *err != nil
	for _, stmt := range t.conn.tx.closing {
		_ = stmt.Close() // if the connection is gone, so is the statement
	}
	t.conn.tx = txState{}
	t.conn.open.Store(nil)
	t.conn.uses.end()
}

// ends reports whether what is open on the connection is about to end without its
// holder: the end of a context closes the connection under a statement or rows, and
// has database/sql roll a transaction back. For any goroutine.
func (c *serverConn) ends() bool {
	if c.wire.gone() {
		return true
	}
	t := c.open.Load()
	if t == nil {
		return false
	}
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// leavesNoTransaction reports whether a COMMIT or ROLLBACK that ended with err
// has certainly ended its transaction.
func leavesNoTransaction(err error) bool {
	if commit, ok := errors.AsType[*commitError](err); ok {
		return commit.sent && classify(commit.err, occasion{phase: phaseCommit}) == VerdictRolledBack
	}
	return errors.Is(err, ErrTxEnded)
}

// commitError is a failed COMMIT with the facts that decide what it means.
type commitError struct {
	err      error
	sent     bool
	readOnly bool // the transaction was
	stays    bool // something in it may have been committed before
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
	switch {
	case e.stays:
		return Unknown
	case !e.sent:
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
