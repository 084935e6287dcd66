package shardrouter

import (
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// Progress is how far a statement got that ended without a certain answer.
type Progress int

// How far a statement got. The zero value is Unknown.
const (
	// Unknown: it may have run, and what it did may stay.
	Unknown Progress = iota
	// NotSent: the server has not got it, or not taken it for its size.
	NotSent
	// Sent: it may have run, and provably only read.
	Sent
	// RolledBack: it stood in a transaction whose COMMIT was not sent, and of
	// which nothing stays.
	RolledBack
)

// String returns the progress in lower-case words, fit for logs and labels.
func (p Progress) String() string {
	switch p {
	case Unknown:
		return "unknown"
	case NotSent:
		return "not sent"
	case Sent:
		return "sent"
	case RolledBack:
		return "rolled back"
	}
	return "invalid"
}

// ProgressOf returns how far the statement or transaction got that ended with
// err. It is Unknown for every error that does not say, among them a server's
// own answer to a statement, such as a duplicate key, and the end of a context.
func ProgressOf(err error) Progress {
	if s, ok := errors.AsType[*StatementError](err); ok {
		return s.Progress
	}
	if c, ok := errors.AsType[*commitError](err); ok {
		return c.progress()
	}
	if errors.Is(err, ErrOutcomeUnknown) {
		return Unknown
	}
	if errors.Is(err, ErrRolledBack) {
		return RolledBack
	}
	for _, refused := range []error{ErrRowsOpen, ErrTxOpen, ErrTxEnded, ErrImplicitCommit, ErrTooLarge, ErrUnavailable, ErrBusy, ErrNestedLease} {
		if errors.Is(err, refused) {
			return NotSent
		}
	}
	return Unknown
}

// StatementError is a statement on a lease's connection that ended because the
// connection went, or in a way that leaves open whether it took effect, or that was
// too large. It wraps [ErrOutcomeUnknown] if Progress is Unknown, [ErrTooLarge] if
// it was too large, and else [ErrConnLost].
//
// An answer of the server that leaves nothing open, such as a duplicate key,
// comes as the driver gives it, and so does the end of the statement's context.
type StatementError struct {
	Shard    string
	Node     string // host:port; for logs, not for clients
	Progress Progress
	Err      error // what the driver, or the server, said
}

func (e *StatementError) Error() string {
	return e.occasion().Error() + " (" + e.Shard + " at " + e.Node + ", statement " + e.Progress.String() + "): " + e.Err.Error()
}

// Unwrap gives the occasion and the evidence, but never driver.ErrBadConn, for
// which database/sql would close the connection under its holder, and wait for
// rows that are open.
func (e *StatementError) Unwrap() []error {
	if errors.Is(e.Err, driver.ErrBadConn) {
		return []error{e.occasion()}
	}
	return []error{e.occasion(), e.Err}
}

func (e *StatementError) occasion() error {
	switch {
	case e.Progress == Unknown:
		return ErrOutcomeUnknown
	case tooLarge(e.Err):
		return ErrTooLarge
	}
	return ErrConnLost
}

// ranAs is what is known of a statement that failed.
type ranAs struct {
	query string
	reach reach
	inTx  bool // begun by BeginTx, and COMMIT was not sent
	stays bool // and something in it may have been committed before
	multi bool // the connection takes several statements at once
}

// progressOf says how far a statement got that ended with err; ok is false if
// the error leaves nothing open and the connection stays, so that it is the
// statement's own. A statement of which nobody can tell what it does leaves
// everything open, except within a transaction that it cannot end.
func progressOf(r ranAs, err error, v Verdict) (p Progress, ok bool) {
	answer, answered := errors.AsType[*mysql.MySQLError](err)
	switch {
	case tooLarge(err):
		return NotSent, true
	case isContextError(err), !answered && v != VerdictLost:
		return Unknown, false
	case v == VerdictLost && r.reach == reachNotSent && !r.inTx:
		return NotSent, true
	case r.inTx && (r.stays || mayCommit(r.query, r.multi)):
		return Unknown, v == VerdictLost || v == VerdictReadOnly
	case r.inTx:
		return RolledBack, v == VerdictLost
	case onlyReads(r.query):
		return Sent, v == VerdictLost
	case isOpaque(r.query, r.multi):
		return Unknown, true
	}
	return Unknown, v == VerdictLost || leavesOpen(answer)
}

// leavesOpen reports whether a server may give the answer to a write that was
// committed all the same, or will be.
func leavesOpen(answer *mysql.MySQLError) bool {
	if answer == nil {
		return false
	}
	switch answer.Number {
	case erErrorOnWrite, erUnknownCommand, erServerShutdown, erErrorDuringCommit, erQueryInterrupted,
		erBinlogLoggingImpossible, erConnectionKilled, erStatementTimeout, erHookFailed:
		return true
	}
	return false
}

// severalStatements reports whether query may hold more than one statement.
func severalStatements(query string) bool {
	sc := sqlScanner{s: query}
	for {
		word, symbol := sc.next()
		switch {
		case sc.hidden, sc.backslash: // where the quotes end hangs on the SQL mode
			return strings.IndexByte(query, ';') >= 0
		case word == "" && symbol == 0:
			return false
		case symbol == ';':
			word, symbol = sc.next()
			return word != "" || symbol != 0
		}
	}
}

// isOpaque reports whether an error in answer to a statement leaves open what
// of it stays: a procedure, several statements, a stored function in a SELECT,
// DDL.
func isOpaque(query string, multi bool) bool {
	if multi && severalStatements(query) {
		return true
	}
	if !isTransactionControl(query) && mayCommit(query, false) {
		return true
	}
	sc := readScanner{sqlScanner: sqlScanner{s: query}}
	sc.unwrap()
	switch upper(sc.word()) {
	case "SELECT", "WITH", "DO":
		return sc.callsUnknown()
	}
	return false
}

// isTransactionControl tells BEGIN and the like from DDL.
func isTransactionControl(query string) bool {
	sc := sqlScanner{s: query}
	sc.unwrap()
	switch upper(sc.word()) {
	case "BEGIN", "START", "COMMIT", "ROLLBACK", "SET":
		return true
	}
	return false
}

// callsUnknown reports whether the rest calls a function that is not known to
// read.
func (sc *readScanner) callsUnknown() bool {
	for {
		word, symbol := sc.next()
		switch {
		case word == "" && symbol == 0:
			return false
		case word == "" && symbol != '`' && symbol != '"':
		case !sc.bracketNext(), word != "" && (bracketWords.has(word) || writingWords.has(word)):
		case word == "" || sc.before == '.' || !readingFunctions.has(word):
			return true
		}
		sc.before = symbol
	}
}
