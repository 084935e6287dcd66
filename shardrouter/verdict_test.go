package shardrouter_test

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/shardrouter"
)

func answer(number uint16, text string) error {
	return &mysql.MySQLError{Number: number, Message: text}
}

const (
	readOnlyText      = "The MariaDB server is running with the --read-only option so it cannot execute this statement"
	superReadOnlyText = "The MySQL server is running with the --super-read-only option so it cannot execute this statement"
	otherOptionText   = "The MySQL server is running with the --secure-file-priv option so it cannot execute this statement"
)

func TestClassify(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	reset := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	missing := &fs.PathError{Op: "open", Path: "rows.csv", Err: syscall.ENOENT}

	tests := []struct {
		reason string
		err    error
		at     shardrouter.Occasion
		want   shardrouter.Verdict
	}{
		{"no error says nothing", nil, shardrouter.OnStatement, shardrouter.VerdictStatement},

		{"nothing listens", refused, shardrouter.OnConnect, shardrouter.VerdictUnreachable},
		{"the name does not resolve", &net.DNSError{Name: "db1", IsNotFound: true}, shardrouter.OnConnect, shardrouter.VerdictUnreachable},
		{"the attempt's own deadline: a silent server", context.DeadlineExceeded, shardrouter.OnConnect, shardrouter.VerdictUnreachable},
		{"accepted, then closed", mysql.ErrInvalidConn, shardrouter.OnConnect, shardrouter.VerdictUnreachable},
		{"closed before the ping was sent", driver.ErrBadConn, shardrouter.OnConnect, shardrouter.VerdictUnreachable},
		{"closed in the handshake", io.ErrUnexpectedEOF, shardrouter.OnConnect, shardrouter.VerdictUnreachable},
		{"the handshake is no MySQL", mysql.ErrMalformPkt, shardrouter.OnConnect, shardrouter.VerdictUnreachable},
		{"an error that the driver has no type for", errors.New("unsupported protocol version 1"), shardrouter.OnConnect, shardrouter.VerdictUnreachable},
		{"shutting down", answer(1053, "Server shutdown in progress"), shardrouter.OnConnect, shardrouter.VerdictUnreachable},
		{"host blocked after too many errors", answer(1129, "Host is blocked"), shardrouter.OnConnect, shardrouter.VerdictUnreachable},
		{"host not allowed", answer(1130, "Host is not allowed"), shardrouter.OnConnect, shardrouter.VerdictUnreachable},
		{"a Galera node that is not ready", answer(1047, "WSREP has not yet prepared node for application use"), shardrouter.OnConnect, shardrouter.VerdictUnreachable},
		{"MySQL in offline mode", answer(3032, "The server is currently in offline mode"), shardrouter.OnConnect, shardrouter.VerdictUnreachable},
		{"full", answer(1040, "Too many connections"), shardrouter.OnConnect, shardrouter.VerdictBusy},
		{"full for this user", answer(1203, "User has already more than max_user_connections"), shardrouter.OnConnect, shardrouter.VerdictBusy},
		{"the user's hourly limit", answer(1226, "User has exceeded the max_connections_per_hour resource"), shardrouter.OnConnect, shardrouter.VerdictBusy},
		{"out of threads is load", answer(1135, "Can't create a new thread"), shardrouter.OnConnect, shardrouter.VerdictBusy},
		{"the bulkhead is full", fmt.Errorf("shard a: %w", shardrouter.ErrBusy), shardrouter.OnConnect, shardrouter.VerdictBusy},
		{"no right to the database", answer(1044, "Access denied to database"), shardrouter.OnConnect, shardrouter.VerdictMisconfigured},
		{"wrong password", answer(1045, "Access denied"), shardrouter.OnConnect, shardrouter.VerdictMisconfigured},
		{"no such database", answer(1049, "Unknown database"), shardrouter.OnConnect, shardrouter.VerdictMisconfigured},
		{"a parameter of the DSN that the server does not know", answer(1193, "Unknown system variable"), shardrouter.OnConnect, shardrouter.VerdictMisconfigured},
		{"an expired password", answer(1862, "Your password has expired"), shardrouter.OnConnect, shardrouter.VerdictMisconfigured},
		{"TLS asked for, and not there", mysql.ErrNoTLS, shardrouter.OnConnect, shardrouter.VerdictMisconfigured},
		{"a certificate that does not hold", &tls.CertificateVerificationError{Err: errors.New("unknown authority")}, shardrouter.OnConnect, shardrouter.VerdictMisconfigured},
		{"read-only in answer to the verifying statement", answer(1290, readOnlyText), shardrouter.OnConnect, shardrouter.VerdictReadOnly},
		{"the caller went while dialling", context.Canceled, shardrouter.ConnectDone, shardrouter.VerdictNeutral},
		{"the caller's own deadline", context.DeadlineExceeded, shardrouter.ConnectDone, shardrouter.VerdictNeutral},
		{"an answer counts although the caller went", answer(1045, "Access denied"), shardrouter.ConnectDone, shardrouter.VerdictMisconfigured},

		{"read_only is on", answer(1290, readOnlyText), shardrouter.OnStatement, shardrouter.VerdictReadOnly},
		{"super_read_only is on", answer(1290, superReadOnlyText), shardrouter.OnStatement, shardrouter.VerdictReadOnly},
		{"the option is spelt as a variable", answer(1290, "running with read_only = ON"), shardrouter.OnStatement, shardrouter.VerdictReadOnly},
		{"1290 of another option", answer(1290, otherOptionText), shardrouter.OnStatement, shardrouter.VerdictStatement},
		{"read-only words under another number", answer(1364, "Field 'read-only' has no default value"), shardrouter.OnStatement, shardrouter.VerdictStatement},
		{"read-only mode", answer(1836, "Running in read-only mode"), shardrouter.OnStatement, shardrouter.VerdictReadOnly},
		{"a transaction that the server made read-only", answer(1792, "Cannot execute statement in a READ ONLY transaction"), shardrouter.OnStatement, shardrouter.VerdictReadOnly},
		{"a transaction begun as read-only", answer(1792, "Cannot execute statement in a READ ONLY transaction"), shardrouter.OnReadOnlyTx, shardrouter.VerdictStatement},
		{"deadlock", answer(1213, "Deadlock found"), shardrouter.OnStatement, shardrouter.VerdictRolledBack},
		{"interrupted by a shutdown or KILL QUERY", answer(1317, "Query execution was interrupted"), shardrouter.OnStatement, shardrouter.VerdictRolledBack},
		{"changed since the snapshot", answer(1020, "Record has changed since last read"), shardrouter.OnStatement, shardrouter.VerdictRolledBack},
		{"shutdown in answer to a statement", answer(1053, "Server shutdown in progress"), shardrouter.OnStatement, shardrouter.VerdictLost},
		{"Galera lost its quorum", answer(1047, "WSREP has not yet prepared node for application use"), shardrouter.OnStatement, shardrouter.VerdictLost},
		{"the connection was killed", answer(1927, "Connection was killed"), shardrouter.OnStatement, shardrouter.VerdictLost},
		{"idle for too long", answer(4031, "The client was disconnected by the server because of inactivity"), shardrouter.OnStatement, shardrouter.VerdictLost},
		{"the hourly limit of queries", answer(1226, "User has exceeded the max_questions resource"), shardrouter.OnStatement, shardrouter.VerdictBusy},
		{"duplicate key", answer(1062, "Duplicate entry"), shardrouter.OnStatement, shardrouter.VerdictStatement},
		{"lock wait timeout", answer(1205, "Lock wait timeout exceeded"), shardrouter.OnStatement, shardrouter.VerdictStatement},
		{"USE of a database that is not there", answer(1049, "Unknown database"), shardrouter.OnStatement, shardrouter.VerdictStatement},
		{"access denied by a statement", answer(1044, "Access denied"), shardrouter.OnStatement, shardrouter.VerdictStatement},
		{"no rows", sql.ErrNoRows, shardrouter.OnStatement, shardrouter.VerdictStatement},
		{"too large for the driver: not sent", mysql.ErrPktTooLarge, shardrouter.OnStatement, shardrouter.VerdictStatement},
		{"a missing file has a network error's methods", missing, shardrouter.OnStatement, shardrouter.VerdictStatement},
		{"the driver found the connection dead", driver.ErrBadConn, shardrouter.OnStatement, shardrouter.VerdictLost},
		{"the connection died under a statement", mysql.ErrInvalidConn, shardrouter.OnStatement, shardrouter.VerdictLost},
		{"packets out of order", mysql.ErrPktSync, shardrouter.OnStatement, shardrouter.VerdictLost},
		{"reset", reset, shardrouter.OnStatement, shardrouter.VerdictLost},
		{"bare reset", syscall.ECONNRESET, shardrouter.OnStatement, shardrouter.VerdictLost},
		{"broken pipe", syscall.EPIPE, shardrouter.OnStatement, shardrouter.VerdictLost},
		{"end of the stream", io.EOF, shardrouter.OnStatement, shardrouter.VerdictLost},
		{"database/sql had closed it", sql.ErrConnDone, shardrouter.OnStatement, shardrouter.VerdictLost},
		{"the lease was ended because its shard went down", fmt.Errorf("lease: %w", shardrouter.ErrShardDown), shardrouter.OnStatement, shardrouter.VerdictLost},
		{"a context of ours ended it", context.Canceled, shardrouter.OnStatement, shardrouter.VerdictLost},
		{"the caller's context ended it", context.Canceled, shardrouter.StatementDone, shardrouter.VerdictNeutral},
		{"the driver closed it for the caller's context", mysql.ErrInvalidConn, shardrouter.StatementDone, shardrouter.VerdictNeutral},
		{"wrapped", fmt.Errorf("dig: %w", answer(1213, "Deadlock found")), shardrouter.OnStatement, shardrouter.VerdictRolledBack},
		{"joined with the rollback's own failure", errors.Join(answer(1213, "Deadlock found"), mysql.ErrInvalidConn), shardrouter.OnStatement, shardrouter.VerdictRolledBack},
		{"joined behind another", errors.Join(errors.New("cleanup"), fmt.Errorf("dig: %w", reset)), shardrouter.OnStatement, shardrouter.VerdictLost},

		{"COMMIT lost to a deadlock", answer(1213, "Deadlock found"), shardrouter.OnCommit, shardrouter.VerdictRolledBack},
		{"COMMIT failed certification", answer(3101, "Plugin instructed the server to rollback"), shardrouter.OnCommit, shardrouter.VerdictRolledBack},
		{"COMMIT refused as read-only", answer(1290, readOnlyText), shardrouter.OnCommit, shardrouter.VerdictReadOnly},
		{"COMMIT refused in read-only mode", answer(1836, "Running in read-only mode"), shardrouter.OnCommit, shardrouter.VerdictReadOnly},
		{"1290 of another option proves nothing", answer(1290, otherOptionText), shardrouter.OnCommit, shardrouter.VerdictUnknown},
		{"a frozen Galera majority, rows there after the thaw", answer(1180, "Got error 6 during COMMIT"), shardrouter.OnCommit, shardrouter.VerdictUnknown},
		{"COMMIT while the node is not ready", answer(1047, "WSREP has not yet prepared node"), shardrouter.OnCommit, shardrouter.VerdictUnknown},
		{"COMMIT and shutdown", answer(1053, "Server shutdown in progress"), shardrouter.OnCommit, shardrouter.VerdictUnknown},
		{"COMMIT interrupted", answer(1317, "Query execution was interrupted"), shardrouter.OnCommit, shardrouter.VerdictUnknown},
		{"COMMIT and the connection killed", answer(1927, "Connection was killed"), shardrouter.OnCommit, shardrouter.VerdictUnknown},
		{"COMMIT failed in a hook", answer(3100, "Error on observer while running replication hook"), shardrouter.OnCommit, shardrouter.VerdictUnknown},
		{"COMMIT without an answer", mysql.ErrInvalidConn, shardrouter.OnCommit, shardrouter.VerdictUnknown},
		{"COMMIT and a reset", reset, shardrouter.OnCommit, shardrouter.VerdictUnknown},
		{"COMMIT was not written", driver.ErrBadConn, shardrouter.OnCommit, shardrouter.VerdictLost},
		{"COMMIT and a caller that went", context.Canceled, shardrouter.CommitDone, shardrouter.VerdictUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			if got := shardrouter.Classify(tt.err, tt.at); got != tt.want {
				t.Errorf("Classify(%v) = %v, want %v", tt.err, got, tt.want)
			}
		})
	}
}

func TestVerdictString(t *testing.T) {
	seen := make(map[string]bool)
	for v := shardrouter.VerdictStatement; v <= shardrouter.VerdictUnknown; v++ {
		s := v.String()
		if s == "" || s == "invalid" || seen[s] {
			t.Errorf("verdict %d: String() = %q, want a word of its own", v, s)
		}
		seen[s] = true
	}
	if got := shardrouter.Verdict(-1).String(); got != "invalid" {
		t.Errorf("String() of no verdict = %q, want invalid", got)
	}
}

// FuzzClassifyCommit holds that after COMMIT no answer but the few certain
// ones is taken for "did not commit".
func FuzzClassifyCommit(f *testing.F) {
	f.Add([]byte{0x05, 0x0a}, readOnlyText)
	f.Add([]byte{0x04, 0xbd}, "Deadlock found")
	f.Fuzz(func(t *testing.T, raw []byte, text string) {
		if len(raw) < 2 {
			return
		}
		number := binary.BigEndian.Uint16(raw)
		got := shardrouter.Classify(answer(number, text), shardrouter.OnCommit)
		switch number {
		case 1213, 3101, 1290, 1792, 1836:
		default:
			if got != shardrouter.VerdictUnknown {
				t.Errorf("COMMIT answered with %d: verdict %v, want unknown", number, got)
			}
		}
	})
}
