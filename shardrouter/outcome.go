package shardrouter

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	// keyWait is how long a call waits for another one with the same key.
	keyWait = 5 * time.Second
	// maxAnswer bounds an answer that is kept, in bytes.
	maxAnswer = 1 << 20
)

// outcome is the outcome row of one run of a transaction. Its primary key is
// inserted by the transaction's first statement, so that the row is there if
// and only if the transaction was committed.
type outcome struct {
	id    [sha256.Size]byte
	keyed bool
	// run tells the runs that insert the same id apart; with a key only.
	run     [16]byte
	request [sha256.Size]byte
	table   string

	// Where the run takes place.
	shard  string
	node   *node
	writer *writer
}

// newOutcome returns the row for a run on this lease; nil when there shall be,
// or can be, none.
func (l *Lease) newOutcome(opts TxOptions) (*outcome, error) {
	if opts.ReadOnly || opts.NoOutcomeRow {
		return nil, nil
	}
	if l.pool.outcomes.isAbsent() {
		if opts.Key != "" {
			return nil, l.noTable(nil)
		}
		return nil, nil
	}
	o := &outcome{table: l.pool.outcomes.name, shard: l.Shard(), node: l.server.node, writer: l.server.writer}
	if opts.Key == "" {
		_, _ = rand.Read(o.id[:]) // never fails
		return o, nil
	}
	o.keyed = true
	o.id = keyID(l.pool.shard.Load().Group, opts.Scope, opts.Key)
	o.request = sha256.Sum256(opts.Request)
	_, _ = rand.Read(o.run[:])
	return o, nil
}

// keyID is the primary key of a client's key. The shard is no part of it, or a
// repeat after a rotation would be another.
func keyID(group, scope, key string) [sha256.Size]byte {
	var text []byte
	for _, part := range []string{group, scope, key} {
		text = binary.AppendUvarint(text, uint64(len(part)))
		text = append(text, part...)
	}
	return sha256.Sum256(text)
}

// insertSQL is a statement without parameters, since those would cost a round
// trip to prepare it.
func (o *outcome) insertSQL() string {
	if !o.keyed {
		return fmt.Sprintf("INSERT INTO %s (id, created) VALUES (x'%x', UNIX_TIMESTAMP())", o.table, o.id)
	}
	return fmt.Sprintf("INSERT INTO %s (id, run, request, created) VALUES (x'%x', x'%x', x'%x', UNIX_TIMESTAMP())",
		o.table, o.id, o.run, o.request)
}

func (o *outcome) deleteSQL() string {
	return fmt.Sprintf("DELETE FROM %s WHERE id = x'%x'", o.table, o.id)
}

// insert inserts the row. open: the body may run; otherwise end is the end.
func (l *Lease) insert(ctx context.Context, tx *sql.Tx, o *outcome) (end txEnd, open bool) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if o.keyed {
		limited, cancel = context.WithTimeout(ctx, patience(ctx))
	}
	defer cancel()
	_, err := tx.ExecContext(limited, o.insertSQL())
	switch {
	case err == nil:
		return txEnd{}, true
	case hasNumber(err, erDupEntry):
		return l.repeat(ctx, tx, o), false
	case o.keyed && ctx.Err() == nil && limited.Err() != nil:
		return txEnd{err: ErrKeyInProgress, lost: true, waited: true}, false
	case o.keyed && hasNumber(err, erLockWaitTimeout):
		return txEnd{err: ErrKeyInProgress}, false
	}
	_ = tx.Rollback()
	if missing(err) {
		return txEnd{err: err, noTable: true}, false
	}
	return l.endOfBody(ctx, TxOptions{}, err), false
}

// patience is how long to wait for another call with the same key.
func patience(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return keyWait
	}
	return min(keyWait, time.Until(deadline)/2)
}

// repeat ends a run whose key has been committed before.
func (l *Lease) repeat(ctx context.Context, tx *sql.Tx, o *outcome) txEnd {
	found, err := o.read(ctx, tx)
	_ = tx.Rollback()
	switch {
	case errors.Is(err, sql.ErrNoRows): // purged in this moment
		return txEnd{err: err, again: true}
	case err != nil:
		return l.endOfBody(ctx, TxOptions{}, err)
	}
	return o.repeated(found)
}

// storedOutcome is what an earlier transaction has left.
type storedOutcome struct {
	run, request []byte
	// answer is nil if the transaction was committed before it came to its answer,
	// by its own body.
	answer []byte
}

// read reads the committed row that stands under the same id.
func (o *outcome) read(ctx context.Context, tx *sql.Tx) (found storedOutcome, err error) {
	query := fmt.Sprintf("SELECT run, request, answer FROM %s WHERE id = x'%x'", o.table, o.id)
	err = tx.QueryRowContext(ctx, query).Scan(&found.run, &found.request, &found.answer)
	return found, err
}

// repeated is the end of a call whose key was used before.
func (o *outcome) repeated(found storedOutcome) txEnd {
	if string(found.request) != string(o.request[:]) {
		return txEnd{err: ErrKeyReused}
	}
	if found.answer == nil {
		return txEnd{err: &OutcomeError{Shard: o.shard, Err: errCommittedInPart}}
	}
	return txEnd{answer: Answer{Body: found.answer, Repeated: true}}
}

// keep stores the answer in the row, an empty one as well, as the last statement
// before COMMIT. Without a key nobody can ask for it.
func (o *outcome) keep(ctx context.Context, tx *sql.Tx, body []byte) error {
	if !o.keyed {
		return nil
	}
	if len(body) > maxAnswer {
		return ErrAnswerTooLong
	}
	_, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET answer = x'%x' WHERE id = x'%x'", o.table, body, o.id))
	return err
}

// hasNumber reports whether err is the server's error of that number.
func hasNumber(err error, number uint16) bool {
	me, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && me.Number == number
}
