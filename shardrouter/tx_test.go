package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// session is a Source that rotates as the middleware does.
type session struct {
	f     *fleet
	shard string
	lease *shardrouter.Lease
}

func (s *session) Lease(ctx context.Context) (*shardrouter.Lease, error) {
	if s.lease != nil {
		return s.lease, nil
	}
	l, err := s.f.Lease(ctx, on(s.shard), "")
	if err != nil {
		return nil, err
	}
	s.lease, s.shard = l, l.Shard()
	return l, nil
}

func (s *session) Lost(l *shardrouter.Lease) {
	l.Release()
	s.lease = nil
}

func (s *session) end() {
	if s.lease != nil {
		s.lease.Release()
	}
}

func resetTable(t *testing.T, ddl string) {
	t.Helper()
	lab.Exec(t, server.RootDSN(), "DROP TABLE IF EXISTS game.tx", "CREATE TABLE game.tx "+ddl)
}

func count(t *testing.T) int {
	t.Helper()
	db, err := sql.Open("mysql", server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM tx").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Whether what becomes of a COMMIT can be proved.
var (
	withRow    = shardrouter.TxOptions{}
	withoutRow = shardrouter.TxOptions{NoOutcomeRow: true}
)

// The connection is cut at one place of a transaction's conversation.
func TestTxCut(t *testing.T) {
	tests := []struct {
		name   string
		reason string
		match  string
		when   faultproxy.When
		runs   int   // of the body, or -1 for "1 or 2"
		rows   int   // committed afterwards, or -1 for "0 or 1"
		want   error // nil: it is committed
		opts   shardrouter.TxOptions
	}{
		{"before the outcome row", "nothing reached the server", "shardhop_outcomes", faultproxy.BeforeForward, 1, 1, nil, withRow},
		{"after the outcome row", "the server rolls back what it got", "shardhop_outcomes", faultproxy.AfterForward, 1, 1, nil, withRow},
		{"before the statement", "nothing of it reached the server", "INTO tx", faultproxy.BeforeForward, 2, 1, nil, withRow},
		{"after the statement", "the server rolls back what it got", "INTO tx", faultproxy.AfterForward, 2, 1, nil, withRow},
		{"after its answer", "the same, seen by the next statement", "INTO tx", faultproxy.AfterReply, 2, 1, nil, withRow},
		{"before COMMIT reached the server", "the row is not there, and never will be", "COMMIT", faultproxy.BeforeForward, 2, 1, nil, withRow},
		{"after COMMIT reached the server", "the row tells, once the server is done with it", "COMMIT", faultproxy.AfterForward, -1, 1, nil, withRow},
		{"instead of the answer to COMMIT", "the row is there", "COMMIT", faultproxy.AfterReply, 1, 1, nil, withRow},
		{"before COMMIT reached the server, without a row", "it left this side, and nothing tells where it is", "COMMIT", faultproxy.BeforeForward, 1, 0, shardrouter.ErrOutcomeUnknown, withoutRow},
		{"after COMMIT reached the server, without a row", "the answer is lost", "COMMIT", faultproxy.AfterForward, 1, -1, shardrouter.ErrOutcomeUnknown, withoutRow},
		{"instead of the answer to COMMIT, without a row", "it is committed, and nobody knows", "COMMIT", faultproxy.AfterReply, 1, 1, shardrouter.ErrOutcomeUnknown, withoutRow},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resetTable(t, "(n INT)")
			f := newFleet(t, 2)
			s := &session{f: f, shard: "server_1"}
			defer s.end()
			f.proxies["server_1"].CutAfter([]byte(tt.match), tt.when)
			runs := 0
			err := shardrouter.Tx(t.Context(), s, tt.opts, func(ctx context.Context, tx *sql.Tx) error {
				runs++
				if _, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES (1)"); err != nil {
					return err
				}
				_, err := tx.ExecContext(ctx, "UPDATE tx SET n = 2 WHERE n = 5")
				return err
			})
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v: %s", err, tt.want, tt.reason)
			}
			if runs != tt.runs && (tt.runs >= 0 || runs > 2) {
				t.Errorf("the body ran %d times, want %d: %s", runs, tt.runs, tt.reason)
			}
			if n := count(t); n != tt.rows && (tt.rows >= 0 || n > 1) {
				t.Errorf("%d rows committed, want %d: %s", n, tt.rows, tt.reason)
			}
			if got, want := settlements(f), settledAs(tt.match, runs, err); got != want {
				t.Errorf("settled %+v, want %+v: %s", got, want, tt.reason)
			}
		})
	}
}

// settled counts what was found out of COMMITs: committed, rolled back, unknown.
type settled [3]uint64

func settlements(f *fleet) (sum settled) {
	for _, s := range f.Stats() {
		for i, n := range []uint64{s.SettledCommitted, s.SettledRolledBack, s.SettledUnknown} {
			sum[i] += n
		}
	}
	return sum
}

// settledAs is what a transaction counts whose conversation was cut at match.
func settledAs(match string, runs int, err error) settled {
	switch {
	case match != "COMMIT":
		return settled{}
	case err != nil:
		return settled{0, 0, 1}
	case runs == 2:
		return settled{0, 1, 0}
	}
	return settled{1, 0, 0}
}

// A body that hides the loss of its connection behind an error of its own.
func TestTxRunsAgainWhenTheBodyHidesTheLoss(t *testing.T) {
	resetTable(t, "(n INT)")
	f := newFleet(t, 2)
	s := &session{f: f, shard: "server_1"}
	defer s.end()
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

func TestTxKeepsTheBodysOwnError(t *testing.T) {
	resetTable(t, "(n INT PRIMARY KEY)")
	f := newFleet(t, 1)
	s := &session{f: f, shard: "server_1"}
	defer s.end()
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
	resetTable(t, "(n INT)")
	f := newFleet(t, 1)
	s := &session{f: f, shard: "server_1"}
	defer s.end()
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

// Two transactions lock two rows in opposite order; the server kills one of
// them, whose body ignores that and goes on.
func TestTxRunsAgainAfterADeadlock(t *testing.T) {
	resetTable(t, "(id INT PRIMARY KEY, n INT)")
	lab.Exec(t, server.RootDSN(), "INSERT INTO game.tx VALUES (1, 0), (2, 0)")
	f := newFleet(t, 1)
	var meet, runs sync.WaitGroup
	meet.Add(2)
	transfer := func(first, second int) {
		s := &session{f: f, shard: "server_1"}
		defer s.end()
		again := false
		err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, "UPDATE tx SET n = n + 1 WHERE id = ?", first); err != nil {
				return err
			}
			if !again { // both hold their first row before either asks for its second
				again = true
				meet.Done()
				meet.Wait()
			}
			_, err := tx.ExecContext(ctx, "UPDATE tx SET n = n + 1 WHERE id = ?", second)
			var me *mysql.MySQLError
			if errors.As(err, &me) && me.Number == 1213 {
				// Without the guard this would run, and stay, outside of the transaction.
				if _, err := tx.ExecContext(ctx, "UPDATE tx SET n = n + 100 WHERE id = ?", second); !errors.Is(err, shardrouter.ErrTxEnded) {
					t.Errorf("a statement after the deadlock got %v, want ErrTxEnded", err)
				}
				return nil
			}
			return err
		})
		if err != nil {
			t.Errorf("transaction: %v", err)
		}
	}
	runs.Go(func() { transfer(1, 2) })
	runs.Go(func() { transfer(2, 1) })
	runs.Wait()

	db, err := sql.Open("mysql", server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var low, high int
	if err := db.QueryRowContext(t.Context(), "SELECT MIN(n), MAX(n) FROM tx").Scan(&low, &high); err != nil {
		t.Fatal(err)
	}
	if low != 2 || high != 2 {
		t.Errorf("rows hold %d and %d, want 2 and 2", low, high)
	}
}

// A frozen server at COMMIT: no answer, and no guess.
func TestTxFrozenAtCommit(t *testing.T) {
	resetTable(t, "(n INT)")
	f := newFleet(t, 2)
	s := &session{f: f, shard: "server_1"}
	defer s.end()
	err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES (1)"); err != nil {
			return err
		}
		f.set(faultproxy.Freeze, s.shard)
		return nil
	})
	var unknown *shardrouter.OutcomeError
	if !errors.As(err, &unknown) || unknown.Shard != "server_1" {
		t.Errorf("got %v, want an OutcomeError of server_1", err)
	}
}

// A frozen server before COMMIT: nothing was committed, and the body runs again
// on the next shard.
func TestTxFrozenBeforeCommit(t *testing.T) {
	resetTable(t, "(n INT)")
	f := newFleet(t, 2)
	s := &session{f: f, shard: "server_1"}
	defer s.end()
	runs := 0
	err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
		if runs++; runs == 1 {
			f.set(faultproxy.Freeze, "server_1")
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES (1)")
		return err
	})
	if err != nil || runs != 2 || s.shard != "server_2" {
		t.Errorf("got %v after %d runs on %s, want success in the second run, on server_2", err, runs, s.shard)
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

// A transaction that only reads leaves nothing in doubt.
func TestReadOnlyTxRunsAgainAfterALostCommit(t *testing.T) {
	f := newFleet(t, 2)
	s := &session{f: f, shard: "server_1"}
	defer s.end()
	f.proxies["server_1"].CutAfter([]byte("COMMIT"), faultproxy.AfterForward)
	runs := 0
	err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{ReadOnly: true}, func(ctx context.Context, tx *sql.Tx) error {
		runs++
		var one int
		return tx.QueryRowContext(ctx, "SELECT 1").Scan(&one)
	})
	if err != nil || runs != 2 {
		t.Errorf("got %v after %d runs, want success in the second", err, runs)
	}
}

// A second transaction on the same connection would commit the first.
func TestTransactionsDoNotNest(t *testing.T) {
	resetTable(t, "(n INT)")
	f := newFleet(t, 1)
	s := &session{f: f, shard: "server_1"}
	defer s.end()
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

func TestStatementsThatWouldCommitAreRefused(t *testing.T) {
	resetTable(t, "(n INT)")
	f := newFleet(t, 1)
	s := &session{f: f, shard: "server_1"}
	defer s.end()
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

// The ways in which the end of a transaction reaches a body that does not look.
func TestTxNoticesItsEndWhereverItIsTold(t *testing.T) {
	tests := []struct {
		name  string
		query string // runs into the deadlock
		read  func(*sql.Rows)
	}{
		{"closing the rows", "SELECT n FROM tx WHERE id IN (1, 2) FOR UPDATE", func(rows *sql.Rows) {
			rows.Next()
			_ = rows.Close()
		}},
		{"closing them unread", "SELECT n FROM tx WHERE id IN (1, 2) FOR UPDATE", func(rows *sql.Rows) {
			_ = rows.Close()
		}},
		{"the last row", "SELECT n FROM tx WHERE id IN (1, 2) FOR UPDATE", func(rows *sql.Rows) {
			for rows.Next() {
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resetTable(t, "(id INT PRIMARY KEY, n INT)")
			lab.Exec(t, server.RootDSN(), "INSERT INTO game.tx VALUES (1, 0), (2, 0), (3, 0)")
			f := newFleet(t, 1)
			s := &session{f: f, shard: "server_1"}
			defer s.end()
			other := lab.Open(t, server.DSN())
			runs := 0
			err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
				runs++
				if _, err := tx.ExecContext(ctx, "UPDATE tx SET n = n + 1 WHERE id = 3"); err != nil {
					return err
				}
				var met chan error
				if runs == 1 {
					met = meetInDeadlock(t, other)
				}
				if rows, err := tx.QueryContext(ctx, tt.query); err == nil { //nolint:rowserrcheck // the body does not look, on purpose
					tt.read(rows)
				}
				if met != nil {
					if err := <-met; err != nil {
						t.Errorf("the other transaction: %v", err)
					}
				}
				_, _ = tx.ExecContext(ctx, "UPDATE tx SET n = n + 100 WHERE id = 1")
				return nil
			})
			var first, third int
			if err := other.QueryRowContext(t.Context(), "SELECT MAX(IF(id = 1, n, 0)), MAX(IF(id = 3, n, 0)) FROM tx").Scan(&first, &third); err != nil {
				t.Fatal(err)
			}
			if err != nil || runs != 2 || first != 100 || third%10 != 1 {
				t.Errorf("got %v after %d runs, rows %d and %d: want the whole of the second run and nothing of the first", err, runs, first, third)
			}
		})
	}
}

// meetInDeadlock has another, heavier transaction lock row 2 and then ask for row 3,
// which the test's transaction holds: when that asks for row 2, the server has
// to end one of them, and ends the lighter. The channel gives the other's end.
func meetInDeadlock(t *testing.T, db *sql.DB) chan error {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	const many = 50 // rows changed make a transaction heavy
	for i := range many {
		if _, err := tx.ExecContext(t.Context(), "INSERT INTO tx VALUES (?, 0)", 100+i); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tx.ExecContext(t.Context(), "UPDATE tx SET n = n + 0 WHERE id = 2"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := tx.ExecContext(t.Context(), "UPDATE tx SET n = n + 1000 WHERE id = 3")
		done <- errors.Join(err, tx.Commit())
	}()
	lab.Eventually(t, 5*time.Second, "the other transaction waits", func() bool {
		var waiting int
		err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'UPDATE tx SET n = n + 1000%'").Scan(&waiting)
		return err == nil && waiting == 1
	})
	return done
}

// A server may be set up to roll back the whole transaction when a lock is
// waited for in vain, and not the statement alone.
func TestTxNoticesARollbackOnTimeout(t *testing.T) {
	strict := lab.MariaDB(t, lab.WithArgs("--innodb-rollback-on-timeout=ON", "--innodb-lock-wait-timeout=1"))
	lab.Exec(t, strict.DSN(), "CREATE TABLE tx (id INT PRIMARY KEY, n INT)", "INSERT INTO tx VALUES (1, 0), (2, 0)")
	router, err := shardrouter.New(shardrouter.Config{
		Logger: quiet(),
		Shards: []shardrouter.Shard{{Name: "server_1", DSN: shardrouter.DSN(strict.DSN())}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer router.Close()
	s := &session{f: &fleet{Router: router}, shard: "server_1"}
	defer s.end()

	db := lab.Open(t, strict.DSN())
	holder, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.ExecContext(t.Context(), "UPDATE tx SET n = 1 WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	runs := 0
	err = shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
		runs++
		if _, err := tx.ExecContext(ctx, "UPDATE tx SET n = n + 1 WHERE id = 2"); err != nil {
			return err
		}
		if runs == 1 {
			if _, err := tx.ExecContext(ctx, "UPDATE tx SET n = n + 1 WHERE id = 1"); err == nil {
				t.Error("a locked row was updated")
			}
			_ = holder.Rollback()
		}
		_, _ = tx.ExecContext(ctx, "INSERT INTO tx VALUES (3, 0)")
		return nil
	})
	var second, third int
	if err := db.QueryRowContext(t.Context(), "SELECT SUM(n), SUM(id = 3) FROM tx WHERE id > 1").Scan(&second, &third); err != nil {
		t.Fatal(err)
	}
	if err != nil || runs != 2 || second != 1 || third != 1 {
		t.Errorf("got %v after %d runs, %d and %d: want the whole of the second run", err, runs, second, third)
	}
}

// Many transactions that lock a few rows in any order: all of them get through.
func TestTxUnderContention(t *testing.T) {
	resetTable(t, "(id INT PRIMARY KEY, n INT)")
	lab.Exec(t, server.RootDSN(), "INSERT INTO game.tx VALUES (0, 0), (1, 0), (2, 0)")
	f := newFleet(t, 1)
	const players, rounds = 8, 25
	var wg sync.WaitGroup
	for range players {
		wg.Go(func() {
			s := &session{f: f, shard: "server_1"}
			defer s.end()
			for range rounds {
				order := rand.Perm(3)
				err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
					for _, id := range order {
						if _, err := tx.ExecContext(ctx, "UPDATE tx SET n = n + 1 WHERE id = ?", id); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil && !errors.Is(err, shardrouter.ErrRolledBack) {
					t.Errorf("transaction: %v", err)
				}
				if err != nil {
					t.Logf("given up: %v", err)
				}
			}
		})
	}
	wg.Wait()
	var low, high int
	if err := lab.Open(t, server.DSN()).QueryRowContext(t.Context(), "SELECT MIN(n), MAX(n) FROM tx").Scan(&low, &high); err != nil {
		t.Fatal(err)
	}
	if low != high || low == 0 || low > players*rounds {
		t.Errorf("rows hold %d to %d, want the same in each", low, high)
	}
	t.Logf("%d of %d transactions got through", low, players*rounds)
}
