package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

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
