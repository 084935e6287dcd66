package shardrouter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// OutcomeDDL makes the table of outcome rows. The library makes it by itself in
// the database that the DSN names, at the first [Tx], where its account may
// create tables; elsewhere an operator does. A row takes about a hundred bytes
// and is kept for Config.OutcomeRetention.
const OutcomeDDL = "CREATE TABLE IF NOT EXISTS " + outcomeTableName + outcomeColumns

const (
	outcomeTableName = "shardhop_outcomes"
	outcomeColumns   = ` (
	id BINARY(32) NOT NULL PRIMARY KEY,
	run BINARY(16) NULL,
	request BINARY(32) NULL,
	answer MEDIUMBLOB NULL,
	created BIGINT NOT NULL
) ENGINE=InnoDB`
)

// absentFor is how long a table that could not be made is not asked for again.
const absentFor = time.Minute

// outcomeTable is what one pool knows of its shard's table of outcome rows. Its
// methods are safe for use by several goroutines.
type outcomeTable struct {
	// name is quoted and holds the database, so that a USE does not lead to
	// another table; empty when the DSN names no database.
	name   string
	absent atomic.Pointer[time.Time] // when it was found that there is none; nil: it was not
	logged atomic.Bool
}

func (t *outcomeTable) in(database string) { t.name = tableIn(database, outcomeTableName) }

// tableIn is the quoted name of a table with its database; empty where there is
// no database.
func tableIn(database, table string) string {
	if database == "" {
		return ""
	}
	return quoteName(database) + "." + quoteName(table)
}

func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

func (t *outcomeTable) isAbsent() bool {
	at := t.absent.Load()
	return t.name == "" || at != nil && time.Since(*at) < absentFor
}

// missing reports whether a statement failed because there is no such table,
// or none that the account may use.
func missing(err error) bool {
	return hasNumber(err, erNoSuchTable) || hasNumber(err, erTableAccessDenied) ||
		hasNumber(err, erDBAccessDenied) || hasNumber(err, erBadDB)
}

// makeTable makes the table after an insert that found none; again: the next
// run finds it, or goes on without. No transaction is open.
func (l *Lease) makeTable(ctx context.Context, opts TxOptions, end txEnd) txEnd {
	if ctx.Err() != nil { // which may be just about to roll back
		return txEnd{err: ctx.Err()}
	}
	table := &l.pool.outcomes
	err := end.err
	if hasNumber(err, erNoSuchTable) {
		_, err = l.conn.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+table.name+outcomeColumns)
	}
	if err == nil {
		return txEnd{again: true}
	}
	v := l.pool.classify(err, occasion{phase: phaseStatement, callerDone: ctx.Err() != nil})
	if v != VerdictStatement || ctx.Err() != nil {
		return l.endOf(err, v)
	}
	now := time.Now()
	table.absent.Store(&now)
	if table.logged.CompareAndSwap(false, true) {
		l.pool.cfg.Logger.Error("no table of outcome rows, and it cannot be made: what became of a transaction whose COMMIT got no answer stays unknown on this shard",
			"shard", l.Shard(), "error", err, "remedy", OutcomeDDL)
	}
	if opts.Key != "" {
		return txEnd{err: l.noTable(err)}
	}
	return txEnd{again: true}
}

// noTable is the error of a call that cannot do without the table.
func (l *Lease) noTable(cause error) error {
	if l.pool.outcomes.name == "" {
		return fmt.Errorf("%w on shard %s: its DSN names no database", ErrNoOutcomeTable, l.Shard())
	}
	err := fmt.Errorf("%w on shard %s: run %s", ErrNoOutcomeTable, l.Shard(), OutcomeDDL)
	return errors.Join(err, cause)
}
