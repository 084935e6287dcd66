package shardrouter

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/go-sql-driver/mysql"
)

// Verdict is what an error means for the shard that gave it.
type Verdict int

// The verdicts.
const (
	// VerdictStatement: the statement's own error; it says nothing about the shard.
	VerdictStatement Verdict = iota
	// VerdictUnreachable: no connection, and nothing ran.
	VerdictUnreachable
	// VerdictReadOnly: the server takes no writes; the statement did not run.
	VerdictReadOnly
	// VerdictBusy: the server or the pool is full.
	VerdictBusy
	// VerdictMisconfigured: the server refuses the account or the database.
	VerdictMisconfigured
	// VerdictLost: the connection went while something was under way.
	VerdictLost
	// VerdictRolledBack: the server has rolled the transaction back.
	VerdictRolledBack
	// VerdictNeutral: the caller gave up; nothing is known about the shard.
	VerdictNeutral
	// VerdictUnknown: COMMIT was sent, and whether it took effect cannot be
	// told from the answer.
	VerdictUnknown
)

// String returns the verdict in one lower-case word, fit for logs and labels.
func (v Verdict) String() string {
	switch v {
	case VerdictStatement:
		return "statement"
	case VerdictUnreachable:
		return "unreachable"
	case VerdictReadOnly:
		return "read-only"
	case VerdictBusy:
		return "busy"
	case VerdictMisconfigured:
		return "misconfigured"
	case VerdictLost:
		return "lost"
	case VerdictRolledBack:
		return "rolled-back"
	case VerdictNeutral:
		return "neutral"
	case VerdictUnknown:
		return "unknown"
	}
	return "invalid"
}

// VerdictOf returns what an error of a statement on a lease's connection means
// for the shard. The end of the statement's own context is neutral.
func VerdictOf(err error) Verdict {
	if isContextError(err) {
		return VerdictNeutral
	}
	return classify(err, occasion{phase: phaseStatement})
}

// phase is how far things had come when an error was seen.
type phase int

const (
	phaseConnect   phase = iota // until the connection is verified: nothing ran
	phaseStatement              // a statement, with no COMMIT sent
	phaseCommit                 // COMMIT was handed to the driver
)

// occasion is what the caller of classify knows about the moment of an error.
type occasion struct {
	phase phase
	// callerDone: the context of the request itself is done. An error of a
	// deadline or cancellation that is not the request's is the shard's.
	callerDone bool
	// readOnlyTx: the transaction was begun as READ ONLY, so that being told
	// so says nothing about the server.
	readOnlyTx bool
}

// classify says what err means for the shard that gave it. A server's answer
// is judged by its number, everything else by its type.
func classify(err error, at occasion) Verdict {
	if err == nil {
		return VerdictStatement
	}
	answer, answered := errors.AsType[*mysql.MySQLError](err)
	switch {
	case at.phase == phaseCommit:
		return classifyCommit(err, answer)
	case errors.Is(err, ErrBusy):
		return VerdictBusy
	case answered && at.phase == phaseConnect:
		return classifyRefusal(answer)
	case answered:
		return classifyAnswer(answer, at.readOnlyTx)
	case at.callerDone:
		return VerdictNeutral
	case at.phase == phaseConnect:
		return classifyNoConnection(err)
	case connectionGone(err):
		return VerdictLost
	}
	return VerdictStatement
}

// classifyCommit judges what came of COMMIT. Nothing but a certain answer
// counts: a Galera majority that is frozen answers 1180, and commits later.
func classifyCommit(err error, answer *mysql.MySQLError) Verdict {
	switch {
	case answer == nil && errors.Is(err, driver.ErrBadConn):
		// The driver gives this one only when it wrote no byte.
		return VerdictLost
	case answer == nil:
		return VerdictUnknown
	case refusedReadOnly(answer):
		return VerdictReadOnly
	}
	switch answer.Number {
	case erLockDeadlock, erRollbackDuringCommit:
		return VerdictRolledBack
	}
	return VerdictUnknown
}

// classifyRefusal judges a server's answer to a connection attempt. A server
// that refuses for a reason of its own is alive and set up wrong.
func classifyRefusal(answer *mysql.MySQLError) Verdict {
	switch answer.Number {
	case erConCount, erTooManyUserConnections, erUserLimitReached, erCantCreateThread, erOutOfResources:
		return VerdictBusy
	case erServerShutdown, erHostIsBlocked, erHostNotPrivileged, erUnknownCommand, erConnectionKilled,
		erAbortingConnection, erNetReadError, erNetReadInterrupted, erNetErrorOnWrite, erNetWriteInterrupted,
		erNewAbortingConnection, erOfflineMode, erSessionWasKilled:
		return VerdictUnreachable
	}
	if refusedReadOnly(answer) {
		return VerdictReadOnly
	}
	return VerdictMisconfigured
}

// classifyAnswer judges a server's answer to a statement.
func classifyAnswer(answer *mysql.MySQLError, readOnlyTx bool) Verdict {
	switch answer.Number {
	case erLockDeadlock, erLockTableFull, erQueryInterrupted, erCheckRead:
		return VerdictRolledBack
	case erConCount, erTooManyUserConnections, erUserLimitReached:
		return VerdictBusy
	case erServerShutdown, erUnknownCommand, erConnectionKilled, erAbortingConnection, erNetReadError,
		erNetReadInterrupted, erNetErrorOnWrite, erNetWriteInterrupted, erNewAbortingConnection,
		erSessionWasKilled, erClientInteractionTimeout:
		return VerdictLost
	case erReadOnlyTransaction:
		if readOnlyTx {
			return VerdictStatement
		}
	}
	if refusedReadOnly(answer) {
		return VerdictReadOnly
	}
	return VerdictStatement
}

// refusedReadOnly reports whether the server refused because it takes no
// writes. 1290 is its answer for every option that is in the way, so here the
// text has to say which.
func refusedReadOnly(answer *mysql.MySQLError) bool {
	switch answer.Number {
	case erReadOnlyMode, erReadOnlyTransaction:
		return true
	case erOptionPreventsStatement:
		text := strings.ReplaceAll(strings.ToLower(answer.Message), "_", "-")
		return strings.Contains(text, "read-only")
	}
	return false
}

// classifyNoConnection judges a connection attempt that no server answered.
// Whatever is not known to be a wrong setting counts as unreachable: nothing
// ran, and the next shard may do better.
func classifyNoConnection(err error) Verdict {
	for _, setting := range []error{
		mysql.ErrNoTLS, mysql.ErrOldProtocol, mysql.ErrUnknownPlugin,
		mysql.ErrCleartextPassword, mysql.ErrNativePassword, mysql.ErrOldPassword,
	} {
		if errors.Is(err, setting) {
			return VerdictMisconfigured
		}
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return VerdictMisconfigured
	}
	return VerdictUnreachable
}

// connectionGone reports whether err, seen after a connection was verified,
// says that it cannot be used any more. The types are listed one by one: the
// interface net.Error also fits a file that is missing.
func connectionGone(err error) bool {
	for _, gone := range []error{
		driver.ErrBadConn, sql.ErrConnDone, mysql.ErrInvalidConn, ErrConnLost, errProtocol,
		mysql.ErrMalformPkt, mysql.ErrPktSync, mysql.ErrPktSyncMul,
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, io.ErrShortWrite, net.ErrClosed,
		os.ErrDeadlineExceeded, context.DeadlineExceeded, context.Canceled, ErrShardDown, errOvertaken,
		syscall.ECONNRESET, syscall.ECONNABORTED, syscall.ECONNREFUSED, syscall.EPIPE,
		syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
	} {
		if errors.Is(err, gone) {
			return true
		}
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return true
	}
	_, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok
}
