package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// callers are the ways to run a procedure in a transaction.
var callers = map[string]func(ctx context.Context, tx *sql.Tx, query string) error{
	"Exec":     func(ctx context.Context, tx *sql.Tx, query string) error { return call(ctx, tx, query, false) },
	"prepared": func(ctx context.Context, tx *sql.Tx, query string) error { return call(ctx, tx, query, true) },
	"Query": func(ctx context.Context, tx *sql.Tx, query string) error {
		rows, err := tx.QueryContext(ctx, query)
		if err != nil {
			return err
		}
		return errors.Join(rows.Err(), rows.Close())
	},
	"Query, to the end": func(ctx context.Context, tx *sql.Tx, query string) error {
		rows, err := tx.QueryContext(ctx, query)
		return readToEnd(rows, err)
	},
	"prepared Query, to the end": func(ctx context.Context, tx *sql.Tx, query string) error {
		stmt, err := tx.PrepareContext(ctx, query)
		if err != nil {
			return err
		}
		defer stmt.Close()
		rows, err := stmt.QueryContext(ctx)
		return readToEnd(rows, err)
	},
}

// readToEnd reads all results of a query that ended with err.
func readToEnd(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() {
		}
	}
	return rows.Err()
}

// A procedure may end the transaction in which it is called, and succeed. Nothing
// runs, and stays, behind that.
func TestProcedureThatEndsItsTransaction(t *testing.T) {
	tests := []struct {
		name, body string // of the procedure
		ends       bool
		failed     bool // the server refuses it, or what is in it
		rows       int  // in the end
	}{
		{"commits", "INSERT INTO tx VALUES (2); COMMIT;", true, false, 2},
		{"commits, and begins another", "INSERT INTO tx VALUES (2); COMMIT; START TRANSACTION; INSERT INTO tx VALUES (3);", true, false, 2},
		{"rolls back", "ROLLBACK;", true, false, 0},
		{"commits, and then fails", "COMMIT; SIGNAL SQLSTATE '45000';", true, true, 1},
		{"makes a table", "CREATE TABLE made (n INT);", true, false, 1},
		{"stays inside", "INSERT INTO tx VALUES (2);", false, false, 3},
		{"fails inside", "INSERT INTO tx VALUES (2); SIGNAL SQLSTATE '45000';", false, true, 3},
		{"commits between two results", "SELECT 1; INSERT INTO tx VALUES (2); COMMIT; SELECT 2;", true, false, 2},
		{"commits behind its result", "SELECT 1; COMMIT;", true, false, 1},
		{"has results", "SELECT 1; INSERT INTO tx VALUES (2); SELECT 2;", false, false, 3},
		{"has a savepoint", "SAVEPOINT s; INSERT INTO tx VALUES (2); ROLLBACK TO s;", false, false, 2},
	}
	f := newFleet(t, 1)
	for _, tt := range tests {
		for how, run := range callers {
			t.Run(tt.name+"/"+how, func(t *testing.T) {
				resetTable(t, "(n INT)")
				lab.Exec(t, server.RootDSN(), "DROP TABLE IF EXISTS game.made", "DROP PROCEDURE IF EXISTS game.p",
					"CREATE PROCEDURE game.p() BEGIN "+tt.body+" END")
				s := &session{f: f, shard: "server_1"}
				defer s.end()
				runs := 0
				err := shardrouter.Tx(t.Context(), s, withRow, func(ctx context.Context, tx *sql.Tx) error {
					runs++
					if err := call(ctx, tx, "INSERT INTO tx VALUES (1)", false); err != nil {
						return err
					}
					err := run(ctx, tx, "CALL p()")
					if ended := errors.Is(err, shardrouter.ErrImplicitCommit); ended != tt.ends || !ended && (err != nil) != tt.failed {
						t.Errorf("the CALL got %v, want ErrImplicitCommit: %v, or else an error: %v", err, tt.ends, tt.failed)
					}
					if tt.ends && (shardrouter.ProgressOf(err) != shardrouter.Unknown || !errors.Is(err, shardrouter.ErrOutcomeUnknown)) {
						t.Errorf("the CALL got %v (%v), want ErrOutcomeUnknown", err, shardrouter.ProgressOf(err))
					}
					err = call(ctx, tx, "INSERT INTO tx VALUES (9)", false)
					if errors.Is(err, shardrouter.ErrTxEnded) != tt.ends {
						t.Errorf("the next statement got %v, want ErrTxEnded: %v", err, tt.ends)
					}
					return nil // whatever came
				})
				if errors.Is(err, shardrouter.ErrOutcomeUnknown) != tt.ends || (err != nil) != tt.ends || runs != 1 {
					t.Errorf("got %v after %d runs, want ErrOutcomeUnknown: %v, after one", err, runs, tt.ends)
				}
				if n := count(t); n != tt.rows {
					t.Errorf("%d rows, want %d", n, tt.rows)
				}
				l := f.lease(t, "server_1") // and nothing is left on the connection
				defer l.Release()
				if err := exec(t.Context(), l.Conn(), "INSERT INTO tx VALUES (7)"); err != nil || count(t) != tt.rows+1 {
					t.Errorf("the next holder: %v, and %d rows, want its own to stay", err, count(t))
				}
			})
		}
	}
}

// What ends the transaction without a procedure.
func TestBlockThatEndsItsTransaction(t *testing.T) {
	resetTable(t, "(n INT)")
	f := newFleet(t, 1)
	for _, query := range []string{"EXECUTE IMMEDIATE 'COMMIT'", "IF TRUE THEN COMMIT; END IF"} {
		s := &session{f: f, shard: "server_1"}
		err := shardrouter.Tx(t.Context(), s, withRow, func(ctx context.Context, tx *sql.Tx) error { return call(ctx, tx, query, false) })
		s.end()
		if !errors.Is(err, shardrouter.ErrImplicitCommit) || !errors.Is(err, shardrouter.ErrOutcomeUnknown) {
			t.Errorf("%s: got %v, want ErrImplicitCommit and ErrOutcomeUnknown", query, err)
		}
	}
}

// A procedure that is known to have stayed inside is a statement like any other,
// also with parameters so large that it is prepared for them.
func TestTxRunsAgainAfterAProcedureThatStayedInside(t *testing.T) {
	lab.Exec(t, server.RootDSN(), "DROP PROCEDURE IF EXISTS game.p", "CREATE PROCEDURE game.p(b LONGBLOB) INSERT INTO tx VALUES (2)")
	for _, cutAt := range []string{"INTO tx VALUES (9)", "COMMIT"} {
		for _, size := range []int{1, 5000} {
			s := newSession(t, "(n INT)", 1, with("maxAllowedPacket=4096"))
			s.f.proxies["server_1"].CutAfter([]byte(cutAt), faultproxy.BeforeForward)
			runs := 0
			err := shardrouter.Tx(t.Context(), s, withRow, func(ctx context.Context, tx *sql.Tx) error {
				runs++
				_, err := tx.ExecContext(ctx, "CALL p(?)", strings.Repeat("x", size))
				return errors.Join(err, call(ctx, tx, "INSERT INTO tx VALUES (9)", false))
			})
			if err != nil || runs != 2 {
				t.Errorf("%s, %d bytes: got %v after %d runs, want the second to succeed", cutAt, size, err, runs)
			}
			if n := count(t); n != 2 {
				t.Errorf("%s, %d bytes: %d rows, want two", cutAt, size, n)
			}
		}
	}
}
