package shardrouter_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// What an error leaves open, by the statement, its reach and its transaction.
func TestProgress(t *testing.T) {
	const (
		read  = "SELECT n FROM t"
		write = "UPDATE t SET n = 1"
		call  = "CALL p()"
		none  = shardrouter.Progress(-1) // the statement's own error
	)
	gone := mysql.ErrInvalidConn
	tests := []struct {
		query       string
		reach       shardrouter.Reach
		inTx, multi bool
		err         error
		want        shardrouter.Progress
		reason      string
	}{
		{write, shardrouter.ReachNotSent, false, false, driver.ErrBadConn, shardrouter.NotSent, "the server has not got it"},
		{call, shardrouter.ReachNotSent, false, false, gone, shardrouter.NotSent, "likewise"},
		{write, shardrouter.ReachSent, false, false, gone, shardrouter.Unknown, "it may have been committed"},
		{write, shardrouter.ReachAnswered, false, false, gone, shardrouter.Unknown, "half an answer tells nothing"},
		{read, shardrouter.ReachSent, false, false, gone, shardrouter.Sent, "it changed nothing"},
		{"SELECT dig()", shardrouter.ReachSent, false, false, gone, shardrouter.Unknown, "a stored function may write"},
		{write, shardrouter.ReachSent, true, false, gone, shardrouter.RolledBack, "the server rolls back what it was not told to commit"},
		{write, shardrouter.ReachNotSent, true, false, gone, shardrouter.RolledBack, "and what came before this statement"},
		{call, shardrouter.ReachSent, true, false, gone, shardrouter.Unknown, "a procedure may commit"},
		{"UPDATE t SET n = 1; COMMIT", shardrouter.ReachSent, true, true, gone, shardrouter.Unknown, "so may a second statement"},
		{`SELECT '\'; COMMIT; '`, shardrouter.ReachSent, true, true, gone, shardrouter.Unknown, "where the quote ends is not certain"},
		{"UPDATE t SET n = ';'", shardrouter.ReachSent, true, true, gone, shardrouter.RolledBack, "a quoted semicolon"},

		{write, shardrouter.ReachAnswered, false, false, answer(1062, ""), none, "the statement's own"},
		{write, shardrouter.ReachAnswered, false, false, answer(1205, ""), none, "the statement's own"},
		{write, shardrouter.ReachAnswered, false, false, answer(1213, ""), none, "rolled back"},
		{write, shardrouter.ReachAnswered, false, false, answer(3101, ""), none, "rolled back"},
		{write, shardrouter.ReachAnswered, false, false, answer(1290, readOnlyText), none, "it did not run"},
		{write, shardrouter.ReachAnswered, false, false, answer(1180, ""), shardrouter.Unknown, "a frozen majority commits later"},
		{write, shardrouter.ReachAnswered, false, false, answer(1047, ""), shardrouter.Unknown, "the node left in the midst of it"},
		{write, shardrouter.ReachAnswered, false, false, answer(1053, ""), shardrouter.Unknown, "shutting down"},
		{write, shardrouter.ReachAnswered, false, false, answer(1317, ""), shardrouter.Unknown, "killed, perhaps while it committed"},
		{write, shardrouter.ReachAnswered, false, false, answer(1927, ""), shardrouter.Unknown, "killed"},
		{write, shardrouter.ReachAnswered, false, false, answer(3100, ""), shardrouter.Unknown, "a hook failed at the commit"},
		{read, shardrouter.ReachAnswered, false, false, answer(1317, ""), none, "a read that was killed left nothing"},
		{read, shardrouter.ReachAnswered, false, false, answer(1927, ""), shardrouter.Sent, "the connection went"},
		{write, shardrouter.ReachAnswered, true, false, answer(1927, ""), shardrouter.RolledBack, "the connection went"},
		{write, shardrouter.ReachAnswered, true, false, answer(1180, ""), none, "the transaction goes on"},
		{call, shardrouter.ReachAnswered, false, false, answer(1290, readOnlyText), shardrouter.Unknown, "refused half-way"},
		{call, shardrouter.ReachAnswered, false, false, answer(1644, ""), shardrouter.Unknown, "it may have committed before"},
		{call, shardrouter.ReachAnswered, true, false, answer(1644, ""), none, "the transaction is there to be rolled back"},
		{call, shardrouter.ReachAnswered, true, false, answer(1290, readOnlyText), shardrouter.Unknown, "it may have committed before"},
		{"INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)", shardrouter.ReachAnswered, false, true, answer(1062, ""), shardrouter.Unknown, "the first one stays"},
		{"INSERT INTO t VALUES (';')", shardrouter.ReachAnswered, false, true, answer(1062, ""), none, "one statement"},
		{"SELECT dig(1)", shardrouter.ReachAnswered, false, false, answer(1290, readOnlyText), shardrouter.Unknown, "a function refused half-way"},
		{"SELECT n FROM t FOR UPDATE", shardrouter.ReachAnswered, false, false, answer(1205, ""), none, "locks only"},
		{"DROP TABLE a, b", shardrouter.ReachAnswered, false, false, answer(1051, ""), shardrouter.Unknown, "the other one is gone"},
		{"SET sql_mode = 'x'", shardrouter.ReachAnswered, false, false, answer(1231, ""), none, "of the connection alone"},
		{write, shardrouter.ReachSent, false, false, context.Canceled, none, "the caller's own end"},
		{write, shardrouter.ReachNotSent, false, false, driver.ErrSkip, none, "between the driver and database/sql"},
		{write, shardrouter.ReachNotSent, false, false, mysql.ErrPktTooLarge, shardrouter.NotSent, "the driver refused it"},
		{write, shardrouter.ReachNotSent, true, false, mysql.ErrPktTooLarge, shardrouter.NotSent, "the transaction goes on"},
		{write, shardrouter.ReachAnswered, false, false, answer(1153, ""), shardrouter.NotSent, "the server read its length alone"},
		{write, shardrouter.ReachAnswered, false, false, answer(1105, longDataText), shardrouter.NotSent, "one parameter was too long, and nothing ran"},
		{write, shardrouter.ReachAnswered, false, false, answer(1105, "XPATH error"), none, "the number stands for anything"},
	}
	for _, tt := range tests {
		got, ok := shardrouter.Progressed(tt.query, tt.reach, tt.inTx, tt.multi, tt.err)
		if ok != (tt.want != none) || ok && got != tt.want {
			t.Errorf("%q, reach %d, transaction %v, %v: got %v (typed: %v), want %v: %s",
				tt.query, tt.reach, tt.inTx, tt.err, got, ok, tt.want, tt.reason)
		}
	}
}

// What servers answer to a parameter of a prepared statement that is too long.
const longDataText = "Parameter of prepared statement which is set through mysql_send_long_data() is longer than 'max_allowed_packet' bytes"

// A server that ended the connection while nothing was under way never gets the
// next statement.
func TestStatementAfterTheServerHungUp(t *testing.T) {
	resetTable(t, "(n INT)")
	f := newFleet(t, 1)
	for _, inTx := range []bool{false, true} {
		l := f.lease(t, "server_1")
		run := l.Conn().ExecContext
		want := shardrouter.NotSent
		if inTx {
			tx, err := l.Conn().BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			run, want = tx.ExecContext, shardrouter.RolledBack
			defer func() { _ = tx.Rollback() }()
		}
		var id int
		if err := l.Conn().QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("mysql", server.RootDSN())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), "KILL ?", id); err != nil {
			t.Fatal(err)
		}
		lab.Eventually(t, 5*time.Second, "the end of the connection has come through", func() bool { return l.HungUp() })
		for range 2 {
			_, err = run(t.Context(), "INSERT INTO tx VALUES (1)")
			var typed *shardrouter.StatementError
			if !errors.As(err, &typed) || shardrouter.ProgressOf(err) != want || errors.Is(err, driver.ErrBadConn) {
				t.Errorf("in a transaction: %v: got %v, want a StatementError, %v", inTx, err, want)
			}
		}
		l.Release()
	}
	if n := count(t); n != 0 {
		t.Errorf("%d rows", n)
	}
}

// database/sql looks for ErrBadConn in whatever a driver returns, and would close
// the connection under its holder.
func TestStatementErrorHidesErrBadConn(t *testing.T) {
	for progress, want := range map[shardrouter.Progress]error{
		shardrouter.NotSent: shardrouter.ErrConnLost, shardrouter.Unknown: shardrouter.ErrOutcomeUnknown,
	} {
		err := &shardrouter.StatementError{Progress: progress, Err: driver.ErrBadConn}
		if errors.Is(err, driver.ErrBadConn) || !errors.Is(err, want) {
			t.Errorf("%v: found ErrBadConn: %v, want %v alone", err, errors.Is(err, driver.ErrBadConn), want)
		}
	}
}

// A statement that is slower than the read timeout says so: to the driver, and
// so to the log, it would look like a server that went.
func TestReadTimeoutIsNamed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, func(c *shardrouter.Config) { c.ReadTimeout = 200 * time.Millisecond })
	l := f.lease(t, "server_1")
	defer l.Release()
	_, err := l.Conn().ExecContext(t.Context(), "SELECT SLEEP(5)")
	if !errors.Is(err, shardrouter.ErrConnLost) || !errors.Is(err, mysql.ErrInvalidConn) || !strings.Contains(err.Error(), "SHARD_READ_TIMEOUT") {
		t.Errorf("got %v", err)
	}
}
