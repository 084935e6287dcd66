package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/internal/scriptserver"
	"github.com/shardhop/shardhop/shardrouter"
)

// What each option makes of the statements that a server gets.
func TestTxOptionsReachTheServer(t *testing.T) {
	const serializable, readOnly, outcomeRow = "ISOLATION LEVEL SERIALIZABLE", "START TRANSACTION READ ONLY", "INTO `game`.`shardhop_outcomes`"
	for _, tt := range []struct {
		name string
		opts shardrouter.TxOptions
		want map[string]int // how often the server gets it
	}{
		{"none", shardrouter.TxOptions{}, map[string]int{serializable: 0, readOnly: 0, outcomeRow: 1}},
		{"isolation", shardrouter.TxOptions{Isolation: sql.LevelSerializable}, map[string]int{serializable: 1, readOnly: 0, outcomeRow: 1}},
		{"read-only", shardrouter.TxOptions{ReadOnly: true}, map[string]int{serializable: 0, readOnly: 1, outcomeRow: 0}},
		{"no outcome row", shardrouter.TxOptions{NoOutcomeRow: true}, map[string]int{serializable: 0, readOnly: 0, outcomeRow: 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, src := scriptedSession(t, nil)
			if err := shardrouter.Tx(t.Context(), src, tt.opts, insertOne); err != nil {
				t.Fatal(err)
			}
			for statement, want := range tt.want {
				if n := s.Got(statement); n != want {
					t.Errorf("the server got %q %d times, want %d", statement, n, want)
				}
			}
		})
	}
}

// A transaction that deadlocks for ever runs as often as it may.
func TestTxRunsAsOftenAsItMay(t *testing.T) {
	for most, want := range map[int]int{0: 10, 1: 1, 3: 3} {
		s, src := scriptedSession(t, nil)
		s.Answer("INTO tx", scriptserver.Err(1213, "Deadlock found when trying to get lock"))
		runs := 0
		err := shardrouter.Tx(t.Context(), src, shardrouter.TxOptions{MaxAttempts: most}, func(ctx context.Context, tx *sql.Tx) error {
			runs++
			return insertOne(ctx, tx)
		})
		rolledBack, ok := errors.AsType[*shardrouter.RolledBackError](err)
		if !ok || rolledBack.Runs != want || runs != want || s.Got("COMMIT") != 0 {
			t.Errorf("MaxAttempts %d: got %v after %d runs and %d COMMITs, want a RolledBackError after %d and none", most, err, runs, s.Got("COMMIT"), want)
		}
	}
}

// The application may know better what an error means.
func TestClassifyOverridesTheTable(t *testing.T) {
	const lockWait = 1205
	s, src := scriptedSession(t, func(err error, v shardrouter.Verdict) shardrouter.Verdict {
		if answer, ok := errors.AsType[*mysql.MySQLError](err); ok && answer.Number == lockWait {
			return shardrouter.VerdictRolledBack
		}
		return v
	})
	s.Answer("INTO tx", scriptserver.Err(lockWait, "Lock wait timeout exceeded"))
	runs := 0
	err := shardrouter.Tx(t.Context(), src, withRow, func(ctx context.Context, tx *sql.Tx) error {
		if runs++; runs > 1 {
			s.Answer("INTO tx", scriptserver.OK())
		}
		return insertOne(ctx, tx)
	})
	if err != nil || runs != 2 || s.Got("COMMIT") != 1 {
		t.Errorf("got %v after %d runs and %d COMMITs, want success in the second run", err, runs, s.Got("COMMIT"))
	}
}

// scriptedSession is a session on a scripted server, which ends with the test.
func scriptedSession(t *testing.T, classify func(error, shardrouter.Verdict) shardrouter.Verdict) (*scriptserver.Server, *session) {
	t.Helper()
	s := scriptserver.New(t)
	router, err := shardrouter.New(shardrouter.Config{
		Logger: quiet(), HoldTimeout: shardrouter.HoldNone, Classify: classify,
		Shards: []shardrouter.Shard{{Name: "server_1", DSN: shardrouter.DSN(s.DSN())}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = router.Close() })
	src := &session{f: &fleet{Router: router}, shard: "server_1"}
	t.Cleanup(src.end)
	return s, src
}
