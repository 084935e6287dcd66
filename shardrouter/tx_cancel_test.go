package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// The caller's context ends at each moment of a transaction. What it is told is
// true, and the next holder of a connection finds nothing left.
func TestTxWhoseContextEnds(t *testing.T) {
	tests := []struct {
		name, reason string
		// at is the statement at which the context ends: before it is sent, or
		// instead of the answer to it.
		at      string
		when    faultproxy.When
		rows    int // afterwards, or -1 for "0 or 1, as told"
		unknown bool
	}{
		{"at BEGIN", "nothing was sent", "START TRANSACTION", faultproxy.BeforeForward, 0, false},
		{"at the outcome row", "the server rolls it back", "INTO `game`.`shardhop_outcomes`", faultproxy.AfterReply, 0, false},
		{"in the body", "the server rolls it back", "INTO tx", faultproxy.AfterReply, 0, false},
		{"before COMMIT", "it is on its way, and nobody waits for what becomes of it", "COMMIT", faultproxy.BeforeForward, 0, true},
		{"after COMMIT", "it is committed, and the answer did not come", "COMMIT", faultproxy.AfterReply, 1, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resetTable(t, "(n INT)")
			f := newFleet(t, 1)
			s := &session{f: f, shard: "server_1"}
			warm := shardrouter.Tx(t.Context(), s, withRow, func(context.Context, *sql.Tx) error { return nil }) // makes the table
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			met := f.proxies["server_1"].ForsakeAfter([]byte(tt.at), tt.when) // of which the server does not hear
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				<-met
				cancel()
			}()
			runs := 0
			err := shardrouter.Tx(ctx, s, withRow, func(ctx context.Context, tx *sql.Tx) error {
				runs++
				return insertOne(ctx, tx)
			})
			<-ended
			s.end()
			if err == nil || warm != nil || runs > 1 {
				t.Errorf("got %v after %d runs, want an error after one: %s", err, runs, tt.reason)
			}
			if errors.Is(err, shardrouter.ErrOutcomeUnknown) != tt.unknown || !tt.unknown && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want ErrOutcomeUnknown: %v, or else the end of the context: %s", err, tt.unknown, tt.reason)
			}
			if n := count(t); n != tt.rows {
				t.Errorf("%d rows, want %d: %s", n, tt.rows, tt.reason)
			}
			l := f.lease(t, "server_1")
			defer l.Release()
			if err := exec(t.Context(), l.Conn(), "INSERT INTO tx VALUES (7)"); err != nil || count(t) != tt.rows+1 {
				t.Errorf("the next holder: %v, and %d rows, want its own to stay", err, count(t))
			}
		})
	}
}

// A context that ends rolls the transaction back beside its body, which then meets
// no context, but a transaction that is over.
func TestTxWhoseContextEndsBesideIt(t *testing.T) {
	s := newSession(t, "(n INT)", 1)
	for name, result := range map[string]func(error) error{
		"the body tells":   func(err error) error { return err },
		"the body is done": func(error) error { return nil },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		err := shardrouter.Tx(ctx, s, shardrouter.TxOptions{}, func(_ context.Context, tx *sql.Tx) error {
			cancel()
			var over error
			lab.Eventually(t, 10*time.Second, "the transaction is over", func() bool {
				over = insertOne(t.Context(), tx)
				return errors.Is(over, sql.ErrTxDone)
			})
			return result(over)
		})
		if !errors.Is(err, context.Canceled) || count(t) != 0 {
			t.Errorf("%s: got %v and %d rows, want context.Canceled and none", name, err, count(t))
		}
	}
}

// The context ends while it is found out what became of a COMMIT.
func TestTxWhoseContextEndsWhileItIsSettled(t *testing.T) {
	s := newSession(t, "(n INT)", 1)
	f := s.f
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f.proxies["server_1"].SwitchAfter([]byte("COMMIT"), faultproxy.BeforeForward, faultproxy.Freeze)
	done := make(chan error, 1)
	go func() { done <- shardrouter.Tx(ctx, s, withRow, insertOne) }()
	f.wait(t, healthcache.Down, "server_1") // nothing can tell what became of it
	cancel()
	err := <-done
	if !errors.Is(err, shardrouter.ErrOutcomeUnknown) {
		t.Errorf("got %v, want ErrOutcomeUnknown", err)
	}
	if got := settlements(f); got != (settled{0, 0, 1}) {
		t.Errorf("settled %v, want one unknown", got)
	}
}

// Under SERIALIZABLE two readers of one row that then write it meet in a
// deadlock. Both get through.
func TestSerializableTxsThatDeadlock(t *testing.T) {
	resetTable(t, "(n INT)")
	lab.Exec(t, server.DSN(), "INSERT INTO tx VALUES (1)")
	f := newFleet(t, 1)
	read := make(chan struct{}, 2)
	both := make(chan struct{})
	go func() { <-read; <-read; close(both) }()
	done := make(chan error, 2)
	for range 2 {
		go func() {
			s := &session{f: f, shard: "server_1"}
			defer s.end()
			first := true
			done <- shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{Isolation: sql.LevelSerializable}, func(ctx context.Context, tx *sql.Tx) error {
				var n int
				if err := tx.QueryRowContext(ctx, "SELECT n FROM tx").Scan(&n); err != nil {
					return err
				}
				if first {
					first = false
					read <- struct{}{}
					<-both
				}
				_, err := tx.ExecContext(ctx, "UPDATE tx SET n = ?", n+1)
				return err
			})
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Errorf("transaction: %v", err)
		}
	}
	var n int
	if err := lab.Open(t, server.DSN()).QueryRowContext(t.Context(), "SELECT n FROM tx").Scan(&n); err != nil || n != 3 {
		t.Errorf("the row has %d, %v, want both added to 1", n, err)
	}
}

// A read-only transaction refuses a write, once, and for its own reason.
func TestReadOnlyTxThatWrites(t *testing.T) {
	s := newSession(t, "(n INT)", 2)
	runs := 0
	err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{ReadOnly: true}, func(ctx context.Context, tx *sql.Tx) error {
		runs++
		return insertOne(ctx, tx)
	})
	if refused, ok := errors.AsType[*mysql.MySQLError](err); !ok || refused.Number != 1792 || runs != 1 || s.shard != "server_1" || count(t) != 0 {
		t.Errorf("got %v after %d runs on %s, and %d rows; want 1792 after one on server_1", err, runs, s.shard, count(t))
	}
	if err := shardrouter.Tx(t.Context(), s, withRow, insertOne); err != nil { // the same connection
		t.Errorf("afterwards: %v", err)
	}
}

// The key is the client's, and nothing but a hash of it reaches a database.
func TestKeysOfAnyKind(t *testing.T) {
	s := newSession(t, "(n INT)", 1)
	keys := []string{"k", " ", "k\x00", "\x00k", "'; DROP TABLE tx; -- ", "\xff\xfe", "ключ", strings.Repeat("k", 1<<20), strings.Repeat("k", 1<<20) + "l"}
	start := time.Now()
	for i, key := range keys {
		for n := range 2 {
			answer, err := dig{key: key, scope: t.Name() + start.String(), text: string(rune('a' + i))}.on(t.Context(), s)
			if err != nil || string(answer.Body) != string(rune('a'+i)) || answer.Repeated != (n == 1) {
				t.Errorf("key %d: got %q, repeated %v, %v", i, answer.Body, answer.Repeated, err)
			}
		}
	}
	if n := count(t); n != len(keys) {
		t.Errorf("%d rows, want one for each of %d keys", n, len(keys))
	}
}
