package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// A body that ends its transaction itself runs once, whatever comes after, and
// is never told that a COMMIT of its own did nothing.
func TestTxWhoseBodyEndsIt(t *testing.T) {
	after := func(ctx context.Context, c *sql.Conn) error { return exec(ctx, c, "UPDATE tx SET n = 2 WHERE n = 5") }
	tests := []struct {
		name, cutAt string
		body        func(ctx context.Context, tx *sql.Tx, c *sql.Conn) error
		rows        int
		unknown     bool
	}{
		{"it commits", "never sent", func(_ context.Context, tx *sql.Tx, _ *sql.Conn) error { return tx.Commit() }, 1, true},
		{"it commits, and loses its connection", "UPDATE tx", func(ctx context.Context, tx *sql.Tx, c *sql.Conn) error {
			return errors.Join(tx.Commit(), after(ctx, c))
		}, 1, true},
		{"it commits, loses its connection, and hides that", "UPDATE tx", func(ctx context.Context, tx *sql.Tx, c *sql.Conn) error {
			err := tx.Commit()
			_ = after(ctx, c)
			return err
		}, 1, true},
		{"its COMMIT is cut", "COMMIT", func(_ context.Context, tx *sql.Tx, _ *sql.Conn) error { return tx.Commit() }, 1, true},
		{"its COMMIT is cut, and it hides that", "COMMIT", func(_ context.Context, tx *sql.Tx, _ *sql.Conn) error {
			_ = tx.Commit()
			return nil
		}, 1, true},
		{"it rolls back", "never sent", func(_ context.Context, tx *sql.Tx, _ *sql.Conn) error { return tx.Rollback() }, 0, false},
		{"it rolls back, and goes on beside it", "UPDATE tx", func(ctx context.Context, tx *sql.Tx, c *sql.Conn) error {
			err := errors.Join(tx.Rollback(), exec(ctx, c, "INSERT INTO tx VALUES (1)"))
			_ = after(ctx, c)
			return err
		}, 1, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSession(t, "(n INT)", 2)
			f := s.f
			f.proxies["server_1"].CutAfter([]byte(tt.cutAt), faultproxy.AfterReply)
			runs := 0
			err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
				runs++
				if err := insertOne(ctx, tx); err != nil {
					return err
				}
				return tt.body(ctx, tx, s.lease.Conn())
			})
			if runs != 1 || count(t) != tt.rows {
				t.Errorf("%d runs, %d rows, want one and %d (%v)", runs, count(t), tt.rows, err)
			}
			if err == nil || errors.Is(err, shardrouter.ErrOutcomeUnknown) != tt.unknown {
				t.Errorf("got %v, want an error, unknown outcome: %v", err, tt.unknown)
			}
		})
	}
}

// lender is a session, somebody else takes whose connection as soon as it is
// given back.
type lender struct {
	session
	take func()
}

func (l *lender) Lost(lease *shardrouter.Lease) {
	l.session.Lost(lease)
	l.take()
}

// A transaction that leaves its connection behind, alive, ends no thread that
// may serve somebody else by then.
func TestTxKillsNobodyElse(t *testing.T) {
	resetTable(t, "(n INT)")
	f := newFleet(t, 1)
	var other *shardrouter.Lease
	l := &lender{session{f: f, shard: "server_1"}, func() { other = f.lease(t, "server_1") }}
	defer l.end()
	runs := 0
	err := shardrouter.Tx(t.Context(), l, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
		if runs++; runs == 1 {
			return answer(1290, readOnlyText)
		}
		return insertOne(ctx, tx)
	})
	if other == nil || err != nil || count(t) != 1 {
		t.Fatalf("got %v and %d rows after %d runs", err, count(t), runs)
	}
	defer other.Release()
	if err := other.Conn().PingContext(t.Context()); err != nil {
		t.Errorf("the other player's connection was ended: %v", err)
	}
}

// begun is a transaction of the holder's own that has inserted a row.
func begun(t *testing.T, l *shardrouter.Lease) *sql.Tx {
	t.Helper()
	tx, err := l.Conn().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := insertOne(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	return tx
}

// A member that answers nothing but 1047 refuses ROLLBACK, too. Its transaction
// must not be there for the next holder of the connection to commit.
func TestRefusedRollbackEndsTheConnection(t *testing.T) {
	node := lab.Galera(t, 1)[0]
	lab.Exec(t, node.DSN(), "CREATE TABLE tx (n INT)")
	r := start(t, shardrouter.Config{Shards: []shardrouter.Shard{{Name: "server_1", DSN: shardrouter.DSN(node.DSN()), MaxConns: 1}}})
	refuse := func(what string) { lab.Exec(t, node.RootDSN(), "SET GLOBAL wsrep_reject_queries = "+what) }
	for _, end := range []func(*sql.Tx) error{(*sql.Tx).Rollback, (*sql.Tx).Commit} {
		s := &session{f: &fleet{Router: r}, shard: "server_1"}
		l, err := s.Lease(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tx := begun(t, l)
		refuse("ALL")
		if err := end(tx); err == nil {
			t.Fatal("it was not refused")
		}
		refuse("NONE")
		if _, err := l.Conn().BeginTx(t.Context(), nil); !errors.Is(err, shardrouter.ErrConnLost) {
			t.Errorf("a BEGIN of the same holder got %v, want ErrConnLost: it would commit", err)
		}
		s.Lost(l)
		if err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(context.Context, *sql.Tx) error { return nil }); err != nil {
			t.Error(err)
		}
		s.end()
		if n := rowsAt(t, node); n != 0 {
			t.Errorf("the next holder of the connection committed %d rows", n)
		}
	}
}

// One attempt is one run of the body; that the table has to be made first takes
// none of it away.
func TestTxMakesTheTableWithinOneAttempt(t *testing.T) {
	resetTable(t, "(n INT)")
	forgetKeys(t)
	s := &session{f: newFleet(t, 1), shard: "server_1"}
	defer s.end()
	if err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{MaxAttempts: 1}, insertOne); err != nil || count(t) != 1 {
		t.Errorf("got %v and %d rows", err, count(t))
	}
}

// What stands behind a procedure may stand outside of its transaction, as long as
// it is not known what the procedure did.
func TestProgressAfterACall(t *testing.T) {
	lab.Exec(t, server.RootDSN(), "DROP PROCEDURE IF EXISTS game.only_commit", "CREATE PROCEDURE game.only_commit() COMMIT")
	for _, cutAt := range []string{"CALL", "RELEASE SAVEPOINT"} {
		for _, when := range []faultproxy.When{faultproxy.BeforeForward, faultproxy.AfterReply} {
			resetTable(t, "(n INT)")
			f := newFleet(t, 1)
			l := f.lease(t, "server_1")
			tx, err := l.Conn().BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			f.proxies["server_1"].CutAfter([]byte(cutAt), when)
			_, err = tx.ExecContext(t.Context(), "CALL only_commit()")
			for _, err := range []error{err, insertOne(t.Context(), tx), tx.Commit()} {
				if shardrouter.ProgressOf(err) != shardrouter.Unknown || !errors.Is(err, shardrouter.ErrOutcomeUnknown) {
					t.Errorf("%s %v, %d rows: %v (%v), want unknown", cutAt, when, count(t), err, shardrouter.ProgressOf(err))
				}
			}
			l.Release()
		}
	}
}

// Once it is proved that nothing was committed, nothing is unknown.
func TestTxProvedToBeRolledBackIsNoDoubt(t *testing.T) {
	s := newSession(t, "(n INT)", 1)
	f := s.f
	f.proxies["server_1"].CutAfter([]byte("COMMIT"), faultproxy.BeforeForward)
	err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{MaxAttempts: 1}, insertOne)
	if !errors.Is(err, shardrouter.ErrRolledBack) || errors.Is(err, shardrouter.ErrOutcomeUnknown) || count(t) != 0 {
		t.Errorf("got %v and %d rows, want ErrRolledBack alone and none", err, count(t))
	}
}

// A body that hides the loss of its connection behind an error of its own.
func TestTxRunsAgainWhenTheBodyHidesTheLoss(t *testing.T) {
	s := newSession(t, "(n INT)", 2)
	f := s.f
	f.proxies["server_1"].CutAfter([]byte("INTO tx"), faultproxy.AfterForward)
	err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES (1)"); err != nil {
			return errors.New("could not dig")
		}
		return nil
	})
	if err != nil || count(t) != 1 {
		t.Errorf("got %v and %d rows, want one row", err, count(t))
	}
}

// A body that hides behind an error of its own that the server has rolled it back.
func TestTxRunsAgainWhenTheBodyHidesTheRollback(t *testing.T) {
	s := newSession(t, "(n INT)", 1)
	runs := 0
	err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
		if runs++; runs > 1 {
			return insertOne(ctx, tx)
		}
		_, _ = tx.ExecContext(ctx, "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213")
		return errors.New("could not dig")
	})
	if err != nil || runs != 2 || count(t) != 1 {
		t.Errorf("got %v after %d runs and %d rows, want one row of two runs", err, runs, count(t))
	}
}

func TestTxKeepsTheBodysOwnError(t *testing.T) {
	s := newSession(t, "(n INT PRIMARY KEY)", 1)
	poor := errors.New("not enough gold")
	tests := map[string]func(ctx context.Context, tx *sql.Tx) error{
		"of the game": func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES (1)"); err != nil {
				return err
			}
			return fmt.Errorf("transfer: %w", poor)
		},
		"of a statement": func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES (1), (1)")
			return errors.Join(poor, err)
		},
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			runs := 0
			err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
				runs++
				return body(ctx, tx)
			})
			if !errors.Is(err, poor) || runs != 1 || count(t) != 0 {
				t.Errorf("got %v after %d runs and %d rows, want the body's error, one run, no row", err, runs, count(t))
			}
		})
	}
}

func TestTxRollsBackWhenTheBodyPanics(t *testing.T) {
	s := newSession(t, "(n INT)", 1)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not come through")
			}
		}()
		_ = shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES (1)"); err != nil {
				return err
			}
			panic("in the body")
		})
	}()
	if n := count(t); n != 0 {
		t.Errorf("%d rows committed", n)
	}
}

// An error that looks like a lost connection, but is of the body's own making.
func TestTxDoesNotTakeTheBodysOwnIOForItsConnection(t *testing.T) {
	f := newFleet(t, 1)
	s := &session{f: f, shard: "server_1"}
	defer s.end()
	runs := 0
	err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(context.Context, *sql.Tx) error {
		runs++
		return io.ErrUnexpectedEOF
	})
	if !errors.Is(err, io.ErrUnexpectedEOF) || runs != 1 {
		t.Errorf("got %v after %d runs, want the body's error after one", err, runs)
	}
}

// A second transaction on the same connection would commit the first.
func TestTransactionsDoNotNest(t *testing.T) {
	s := newSession(t, "(n INT)", 1)
	give := errors.New("roll back")
	err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES (1)"); err != nil {
			return err
		}
		inner := shardrouter.Tx(ctx, s, shardrouter.TxOptions{}, func(context.Context, *sql.Tx) error { return nil })
		if !errors.Is(inner, shardrouter.ErrTxOpen) {
			t.Errorf("the inner transaction got %v, want ErrTxOpen", inner)
		}
		return give
	})
	if !errors.Is(err, give) || count(t) != 0 {
		t.Errorf("got %v and %d rows, want the body's error and none", err, count(t))
	}
}

func TestReleaseInsideTx(t *testing.T) {
	f := newFleet(t, 1)
	s := &session{f: f, shard: "server_1"}
	defer s.end()
	runs := 0
	err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
		runs++
		s.lease.Release()
		_, err := tx.ExecContext(ctx, "DO 1")
		return err
	})
	if !errors.Is(err, shardrouter.ErrReleased) || runs != 1 {
		t.Errorf("got %v after %d runs, want ErrReleased after one", err, runs)
	}
}
