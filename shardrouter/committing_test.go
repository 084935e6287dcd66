package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

func TestWhatEndsATransaction(t *testing.T) {
	const (
		alone   = false
		several = true
	)
	tests := []struct {
		query             string
		several           bool
		breaks, mayCommit bool
		reason            string
	}{
		{"UPDATE t SET n = 1", several, false, false, "one that stays inside"},
		{"UPDATE t SET n = 1; DELETE FROM t;", several, false, false, "two that stay inside"},
		{"UPDATE t SET n = 1; COMMIT", several, true, true, "the second ends it"},
		{"UPDATE t SET n = 1; COMMIT", alone, false, false, "the server takes it for a syntax error"},
		{"SELECT 1; SELECT 2; create table x (n int)", several, true, true, "the third is DDL"},
		{";; COMMIT", several, true, true, "empty ones in front"},
		{"SELECT ';COMMIT'; SELECT 1", several, false, false, "quoted"},
		{"SELECT 1 /* ; COMMIT */", several, false, false, "a comment"},
		{"SELECT 1 /*! ; COMMIT */", several, true, true, "a comment that servers execute"},
		{"/*!50000 COMMIT */", alone, true, true, "hidden from a glance at the first word"},
		{"/*M! DROP */ TABLE t", alone, true, true, "likewise"},
		{"SELECT /*! STRAIGHT_JOIN */ 1", alone, false, false, "the first word has decided"},
		{`SELECT '\'; COMMIT; '`, several, true, true, "where the quote ends is not certain"},
		{`SELECT '\'' FROM t`, several, false, false, "wherever it ends, there is no second one"},
		{"SELECT ROLLBACK; ROLLBACK TO SAVEPOINT s", several, false, false, "a savepoint"},
		{"ROLLBACK; TO", several, true, true, "the words of two statements are not one"},
		{"CALL p()", alone, false, true, "what a procedure does cannot be seen"},
		{"SELECT 1; CALL p()", several, false, true, "likewise"},
		{"EXECUTE IMMEDIATE 'COMMIT'", alone, false, true, "likewise"},
		{"SET @a = 1", alone, false, false, "a variable"},
		{"SET PASSWORD = 'x'", alone, true, true, "writes the tables of accounts"},
		{"SET @a = 1, PASSWORD FOR ada = ''", alone, true, true, "likewise, in the midst of a list"},
		{"SET DEFAULT ROLE NONE", alone, true, true, "likewise"},
		{"SET @a = CONCAT('x', 'y'), DEFAULT ROLE miner FOR ada", alone, true, true, "likewise, in the midst of a list"},
		{"SET STATEMENT max_statement_time = 1 FOR SET DEFAULT ROLE NONE", alone, true, true, "what stands behind counts"},
		{"SET @a = 1,\xa0PASSWORD = ''", alone, true, true, "a blank in latin1"},
		{`SET @a = '\', DEFAULT ROLE NONE -- '`, alone, true, true, "where the quote ends is not certain"},
		{"SET @password = PASSWORD('x'), @b = CONCAT('x', PASSWORD('y'))", alone, false, false, "a variable and a function"},
		{"SET ROLE miner, @a = DEFAULT(n)", alone, false, false, "of the connection alone"},
		{"SET STATEMENT max_statement_time = 1 FOR DROP TABLE t", alone, true, true, "what stands behind counts"},
		{"SET STATEMENT max_statement_time = 1 FOR DELETE FROM t", alone, false, false, "likewise"},
		{"SET STATEMENT max_statement_time = 1 FOR CALL p()", alone, false, true, "likewise"},
		{"SET STATEMENT max_statement_time = 1 FOR EXECUTE IMMEDIATE 'COMMIT'", alone, false, true, "likewise"},
		{"IF TRUE THEN COMMIT; END IF", alone, false, true, "MariaDB runs it outside of procedures, too"},
		{"CASE 1 WHEN 1 THEN COMMIT; END CASE", alone, false, true, "likewise"},
		{"once: LOOP COMMIT; LEAVE once; END LOOP", alone, false, true, "likewise, with a label"},
		{"FOR i IN 1..2 DO COMMIT; END FOR", alone, false, true, "likewise"},
		{"`once`: BEGIN NOT ATOMIC COMMIT; END", alone, false, true, "likewise, with a quoted label"},
		{"LOAD INDEX INTO CACHE t", alone, true, true, "it commits"},
		{"LOAD DATA INFILE 'x' INTO TABLE t", alone, false, false, "rows like any other"},
		{"WITH x AS (SELECT 1) SELECT * FROM x", alone, false, false, "reads"},
		{"SAVEPOINT s", alone, false, false, "stays inside"},
		{"RELEASE SAVEPOINT s", alone, false, false, "stays inside"},
		{"CREATE TEMPORARY SEQUENCE x", alone, true, true, "unlike a table, it commits"},
		{"SELECT 1 --\x7f'\n; COMMIT -- '", several, true, true, "a control character begins a comment"},
		{"SELECT 1 --\xa0'\n; COMMIT -- '", several, true, true, "a blank in latin1 likewise"},
		{"CREATE TEMPORARY TABLE x (n INT); DROP TEMPORARY TABLE x", several, false, false, "of the connection alone"},
	}
	for _, tt := range tests {
		if got := shardrouter.BreaksTransaction(tt.query, tt.several); got != tt.breaks {
			t.Errorf("%s (several: %v) ends its transaction: %v, want %v: %s", tt.query, tt.several, got, tt.breaks, tt.reason)
		}
		if got := shardrouter.MayCommit(tt.query, tt.several); got != tt.mayCommit {
			t.Errorf("%s (several: %v) may commit: %v, want %v: %s", tt.query, tt.several, got, tt.mayCommit, tt.reason)
		}
	}
}

func FuzzBreaksTransaction(f *testing.F) {
	for _, seed := range []string{"SELECT 1", "'\\", "/*", "SET STATEMENT a=1 FOR", ";", "((", "ROLLBACK;"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		shardrouter.BreaksTransaction(query, true) // must come to an end, whatever it is given
		if !shardrouter.BreaksTransaction("COMMIT; "+query, true) || !shardrouter.BreaksTransaction("DO 1; COMMIT; "+query, true) {
			t.Error("what follows a COMMIT made it harmless")
		}
	})
}

// severalStatements has the shards' connections take several statements at once.
func severalStatements(c *shardrouter.Config) {
	for i := range c.Shards {
		c.Shards[i].DSN += "?multiStatements=true"
	}
}

func TestCommitBehindAnotherStatementIsRefused(t *testing.T) {
	s := newSession(t, "(n INT)", 1, severalStatements)
	give := errors.New("roll back")
	for _, text := range []string{"INSERT INTO tx VALUES (2); COMMIT", "DO 1; CREATE TABLE ddl (n INT)", "/*! COMMIT */"} {
		err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES (1); INSERT INTO tx VALUES (2)"); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, text); !errors.Is(err, shardrouter.ErrImplicitCommit) {
				t.Errorf("%s: got %v, want ErrImplicitCommit", text, err)
			}
			return give
		})
		if !errors.Is(err, give) || count(t) != 0 {
			t.Errorf("%s: got %v and %d rows, want the body's error and none", text, err, count(t))
		}
	}
}

// A procedure that commits, in a transaction whose connection goes. Whatever
// the body makes of its errors, it does not run again.
func TestTxAfterACallDoesNotRunAgain(t *testing.T) {
	lab.Exec(t, server.RootDSN(), "DROP PROCEDURE IF EXISTS game.dig_and_commit",
		"CREATE PROCEDURE game.dig_and_commit() BEGIN INSERT INTO tx VALUES (1); COMMIT; END")
	hidden := errors.New("could not dig")
	next := func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE tx SET n = 2 WHERE n = 5")
		return err
	}
	tests := []struct {
		name, cutAt string
		prepared    bool
		then        func(ctx context.Context, tx *sql.Tx, err error) error
	}{
		{"its error is returned", "CALL", false, func(_ context.Context, _ *sql.Tx, err error) error { return err }},
		{"its error is hidden", "CALL", false, func(context.Context, *sql.Tx, error) error { return hidden }},
		{"its error is ignored", "CALL", false, func(context.Context, *sql.Tx, error) error { return nil }},
		{"its error is ignored, and the body goes on", "CALL", false, func(ctx context.Context, tx *sql.Tx, _ error) error { return next(ctx, tx) }},
		{"it succeeds, and the next statement is cut", "UPDATE tx", false, func(ctx context.Context, tx *sql.Tx, _ error) error { return next(ctx, tx) }},
		{"it is prepared, and the next statement is cut", "UPDATE tx", true, func(ctx context.Context, tx *sql.Tx, _ error) error { return next(ctx, tx) }},
		{"it succeeds, and COMMIT is cut", "COMMIT", false, func(context.Context, *sql.Tx, error) error { return nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSession(t, "(n INT)", 2)
			f := s.f
			f.proxies["server_1"].CutAfter([]byte(tt.cutAt), faultproxy.AfterReply)
			runs := 0
			err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
				runs++
				return tt.then(ctx, tx, call(ctx, tx, "CALL dig_and_commit()", tt.prepared))
			})
			if !errors.Is(err, shardrouter.ErrOutcomeUnknown) || runs != 1 {
				t.Errorf("got %v after %d runs, want ErrOutcomeUnknown after one", err, runs)
			}
			if n := count(t); n != 1 {
				t.Errorf("%d rows, want the one of the procedure", n)
			}
		})
	}
}

// call runs a statement, prepared or as text.
func call(ctx context.Context, tx *sql.Tx, query string, prepared bool) error {
	if !prepared {
		_, err := tx.ExecContext(ctx, query)
		return err
	}
	stmt, err := tx.PrepareContext(ctx, query)
	if err != nil {
		return err
	}
	defer stmt.Close()
	_, err = stmt.ExecContext(ctx)
	return err
}

func TestStatementsThatWouldCommitAreRefused(t *testing.T) {
	s := newSession(t, "(n INT)", 1)
	for _, stmt := range []string{
		"COMMIT", "ROLLBACK", "BEGIN", "START TRANSACTION", "CREATE TABLE ddl (n INT)", "DROP TABLE tx",
		"ALTER TABLE tx ADD COLUMN m INT", "TRUNCATE tx", "LOCK TABLES tx WRITE", "SET autocommit = 1",
	} {
		give := errors.New("roll back")
		err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES (1)"); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, stmt); !errors.Is(err, shardrouter.ErrImplicitCommit) {
				t.Errorf("%s: got %v, want ErrImplicitCommit", stmt, err)
			}
			return give
		})
		if !errors.Is(err, give) || count(t) != 0 {
			t.Errorf("%s: got %v and %d rows, want the body's error and none", stmt, err, count(t))
		}
	}
	err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
		for _, stmt := range []string{"SAVEPOINT s", "INSERT INTO tx VALUES (1)", "ROLLBACK TO s", "INSERT INTO tx VALUES (2)"} {
			if _, err := tx.ExecContext(ctx, stmt); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || count(t) != 1 {
		t.Errorf("with a savepoint: got %v and %d rows, want one", err, count(t))
	}
}

// A statement that was prepared before its transaction began is refused as well.
func TestStatementPreparedBeforeTxWouldCommit(t *testing.T) {
	for _, text := range []string{"COMMIT", "CREATE TABLE ddl (n INT)", "TRUNCATE tx"} {
		resetTable(t, "(n INT)")
		l := newFleet(t, 1).lease(t, "server_1")
		stmt, err := l.Conn().PrepareContext(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		tx := begun(t, l)
		_, err = stmt.ExecContext(t.Context())
		if !errors.Is(err, shardrouter.ErrImplicitCommit) || shardrouter.ProgressOf(err) != shardrouter.NotSent {
			t.Errorf("%s: got %v (%v), want ErrImplicitCommit, not sent", text, err, shardrouter.ProgressOf(err))
		}
		if err := errors.Join(tx.Rollback(), stmt.Close()); err != nil || count(t) != 0 { //nolint:sqlclosecheck // before the lease ends
			t.Errorf("%s: %v and %d rows, want none", text, err, count(t))
		}
		l.Release()
	}
}
