package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/shardhop/shardhop/internal/scriptserver"
	"github.com/shardhop/shardhop/shardrouter"
)

// A procedure is not sent when the savepoint before it fails, so the transaction
// runs again as it does after any other statement.
func TestTxRunsAgainWhenTheMarkBeforeACallFails(t *testing.T) {
	answers := map[string]scriptserver.Answer{
		"hung up":          scriptserver.HangUp(),
		"rolled back":      scriptserver.Err(1213, "Deadlock found when trying to get lock"),
		"not yet prepared": scriptserver.Err(1047, "WSREP has not yet prepared node for application use"),
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			s := scriptserver.New(t)
			src := &session{f: &fleet{Router: routerOf(t, s.DSN())}, shard: "server_1"}
			defer src.end()
			s.Answer("SAVEPOINT shardhop_call", answer)
			runs := 0
			err := shardrouter.Tx(t.Context(), src, withRow, func(ctx context.Context, tx *sql.Tx) error {
				if runs++; runs > 1 {
					s.Answer("SAVEPOINT shardhop_call", scriptserver.OK())
				}
				err := call(ctx, tx, "CALL p()", false)
				if runs == 1 && errors.Is(err, shardrouter.ErrOutcomeUnknown) {
					t.Errorf("the CALL got %v, want no doubt", err)
				}
				return err
			})
			if err != nil || runs != 2 || s.Got("CALL") != 1 {
				t.Errorf("got %v after %d runs and %d CALLs, want the second run to succeed", err, runs, s.Got("CALL"))
			}
		})
	}
}

// A procedure whose parameters are sent apart stays as little in doubt as one
// whose text has them.
func TestTxRunsAgainAfterACallWithParameters(t *testing.T) {
	s := scriptserver.New(t)
	src := &session{f: &fleet{Router: routerOf(t, s.DSN()+"?interpolateParams=false")}, shard: "server_1"}
	defer src.end()
	s.Answer("UPDATE", scriptserver.Err(1213, "Deadlock found when trying to get lock"))
	runs := 0
	err := shardrouter.Tx(t.Context(), src, withRow, func(ctx context.Context, tx *sql.Tx) error {
		if runs++; runs > 1 {
			s.Answer("UPDATE", scriptserver.OK())
		}
		if _, err := tx.ExecContext(ctx, "CALL p(?)", 1); err != nil {
			return err
		}
		return call(ctx, tx, "UPDATE t SET n = 1", false)
	})
	if err != nil || runs != 2 {
		t.Errorf("got %v after %d runs, want the second to succeed", err, runs)
	}
	if n := s.Got("RELEASE SAVEPOINT"); n != 2 || s.Got("SAVEPOINT") != 2*n {
		t.Errorf("%d marks for 2 calls, of which %d were released", s.Got("SAVEPOINT")-n, n)
	}
}

// Nonsense in answer to a statement of the library's own costs a connection, as it
// does in answer to a holder's, and not the process.
func TestNonsenseInAnswerToTheLibrary(t *testing.T) {
	tests := map[string]struct {
		match string
		runs  int // of the body
		is    error
	}{
		"the savepoint before a procedure": {"SAVEPOINT shardhop_call", 2, nil},
		"the look behind it":               {"RELEASE SAVEPOINT", 1, shardrouter.ErrOutcomeUnknown},
		"the end of a ghost":               {"KILL CONNECTION", 1, shardrouter.ErrRolledBack},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := scriptserver.New(t)
			src := &session{f: &fleet{Router: routerOf(t, s.DSN())}, shard: "server_1"}
			defer src.end()
			s.Answer("CALL", scriptserver.Rows([]string{"n"}, []string{"1"}))
			s.Answer(tt.match, scriptserver.Packet(0))
			if tt.match == "KILL CONNECTION" {
				s.Answer("UPDATE", scriptserver.HangUp())
			}
			runs := 0
			err := shardrouter.Tx(t.Context(), src, withRow, func(ctx context.Context, tx *sql.Tx) error {
				if runs++; runs > 1 {
					s.Answer(tt.match, scriptserver.OK())
				}
				if err := call(ctx, tx, "UPDATE t SET n = 1", false); err != nil {
					return err
				}
				rows, err := tx.QueryContext(ctx, "CALL p()")
				return readToEnd(rows, err)
			})
			if !errors.Is(err, tt.is) || runs != tt.runs || s.Got(tt.match) == 0 {
				t.Errorf("got %v after %d runs, want %v after %d", err, runs, tt.is, tt.runs)
			}
		})
	}
}
