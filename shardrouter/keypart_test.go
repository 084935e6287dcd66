package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// A body that commits by itself leaves the key's row without an answer. A repeat
// says so, and does not give an empty answer, nor run the body again.
func TestKeyWithABodyThatCommits(t *testing.T) {
	tests := []struct {
		name, reason string
		commit       func(ctx context.Context, tx *sql.Tx) error
	}{
		{"a procedure", "its error is returned", func(ctx context.Context, tx *sql.Tx) error { return call(ctx, tx, "CALL part()", false) }},
		{"a procedure, ignored", "the answer is refused after the end", func(ctx context.Context, tx *sql.Tx) error {
			_ = call(ctx, tx, "CALL part()", false)
			return nil
		}},
		{"the body", "database/sql ends the transaction", func(ctx context.Context, tx *sql.Tx) error { return errors.Join(insertOne(ctx, tx), tx.Commit()) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSession(t, "(n INT)", 1)
			lab.Exec(t, server.RootDSN(), "CREATE OR REPLACE PROCEDURE game.part() BEGIN INSERT INTO tx VALUES (1); COMMIT; END")
			runs := 0
			for i := range 3 {
				answer, err := shardrouter.TxAnswer(t.Context(), s, dig{key: t.Name()}.opts(), func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
					runs++
					return []byte("gold"), tt.commit(ctx, tx)
				})
				if !errors.Is(err, shardrouter.ErrOutcomeUnknown) || answer.Repeated || len(answer.Body) > 0 {
					t.Errorf("call %d got %q, repeated %v, %v; want ErrOutcomeUnknown: %s", i+1, answer.Body, answer.Repeated, err, tt.reason)
				}
			}
			if n := count(t); n != 1 || runs != 1 {
				t.Errorf("%d rows after %d runs, want one each: %s", n, runs, tt.reason)
			}
		})
	}
}

// An answer may be empty, and is then the answer to the repeat.
func TestKeyWithAnEmptyAnswer(t *testing.T) {
	s := newSession(t, "(n INT)", 1)
	for i := range 2 {
		answer, err := dig{key: t.Name()}.on(t.Context(), s)
		if err != nil || len(answer.Body) > 0 || answer.Repeated != (i == 1) {
			t.Errorf("call %d got %q, repeated %v, %v", i+1, answer.Body, answer.Repeated, err)
		}
	}
	if n := count(t); n != 1 {
		t.Errorf("%d rows, want one", n)
	}
}
