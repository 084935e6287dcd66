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

// newSession is a session on server_1 of a new fleet of n shards, which share a
// new table tx. It ends with the test.
func newSession(t *testing.T, ddl string, n int, change ...func(*shardrouter.Config)) *session {
	t.Helper()
	resetTable(t, ddl)
	s := &session{f: newFleet(t, n, change...), shard: "server_1"}
	t.Cleanup(s.end)
	return s
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
			s := newSession(t, "(n INT)", 2)
			f := s.f
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

// A frozen server at COMMIT: no answer, and no guess.
func TestTxFrozenAtCommit(t *testing.T) {
	s := newSession(t, "(n INT)", 2)
	f := s.f
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
	s := newSession(t, "(n INT)", 2)
	f := s.f
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
