package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// dig is a request with an idempotency key. The body inserts one row and
// answers text.
type dig struct {
	key, scope, request, text string
}

func (d dig) opts() shardrouter.TxOptions {
	return shardrouter.TxOptions{Key: d.key, Scope: d.scope, Request: []byte(d.request)}
}

func (d dig) on(ctx context.Context, s shardrouter.Source) (shardrouter.Answer, error) {
	return shardrouter.TxAnswer(ctx, s, d.opts(), func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		_, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES (1)")
		return []byte(d.text), err
	})
}

func TestKey(t *testing.T) {
	f := newFleet(t, 2)
	first := dig{key: "k", scope: "ada", request: "POST /dig", text: `{"gold":1}`}
	tests := []struct {
		name, reason string
		shard        string
		second       dig
		want         string // the second answer
		repeated     bool
		err          error
		rows         int
	}{
		{"again", "it is a repeat", "server_1", dig{"k", "ada", "POST /dig", "never"}, `{"gold":1}`, true, nil, 1},
		{"again on another shard of the group", "a rotation came between", "server_2", dig{"k", "ada", "POST /dig", "never"}, `{"gold":1}`, true, nil, 1},
		{"another request", "a key stands for one request", "server_1", dig{"k", "ada", "POST /transfer", "never"}, "", false, shardrouter.ErrKeyReused, 1},
		{"another player", "keys are each player's own", "server_1", dig{"k", "bob", "POST /dig", "his"}, "his", false, nil, 2},
		{"another key", "it is another dig", "server_1", dig{"l", "ada", "POST /dig", "hers"}, "hers", false, nil, 2},
		{"the same letters", "scope and key do not run into each other", "server_1", dig{"ak", "ad", "POST /dig", "other"}, "other", false, nil, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resetTable(t, "(n INT)")
			forgetKeys(t)
			s := &session{f: f, shard: "server_1"}
			answer, err := first.on(t.Context(), s)
			s.end()
			if err != nil || string(answer.Body) != first.text || answer.Repeated {
				t.Fatalf("the first got %q, repeated %v, %v", answer.Body, answer.Repeated, err)
			}
			s = &session{f: f, shard: tt.shard}
			defer s.end()
			answer, err = tt.second.on(t.Context(), s)
			if string(answer.Body) != tt.want || answer.Repeated != tt.repeated || !errors.Is(err, tt.err) {
				t.Errorf("got %q, repeated %v, %v; want %q, %v, %v: %s",
					answer.Body, answer.Repeated, err, tt.want, tt.repeated, tt.err, tt.reason)
			}
			if n := count(t); n != tt.rows {
				t.Errorf("%d rows, want %d: %s", n, tt.rows, tt.reason)
			}
		})
	}
}

// forgetKeys empties the table of outcome rows.
func forgetKeys(t *testing.T) {
	t.Helper()
	lab.Exec(t, server.RootDSN(), "DROP TABLE IF EXISTS game.shardhop_outcomes")
}

func TestKeyOptionsThatCannotWork(t *testing.T) {
	f := newFleet(t, 1)
	s := &session{f: f, shard: "server_1"}
	defer s.end()
	body := func(context.Context, *sql.Tx) ([]byte, error) { t.Error("the body ran"); return nil, nil }
	tests := map[string]error{
		"TxAnswer":     shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{Key: "k"}, func(context.Context, *sql.Tx) error { t.Error("the body ran"); return nil }),
		"ReadOnly":     lastOf(shardrouter.TxAnswer(t.Context(), s, shardrouter.TxOptions{Key: "k", ReadOnly: true}, body)),
		"NoOutcomeRow": lastOf(shardrouter.TxAnswer(t.Context(), s, shardrouter.TxOptions{Key: "k", NoOutcomeRow: true}, body)),
	}
	for word, err := range tests {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("got %v, want an error that names %s", err, word)
		}
	}
}

func lastOf(_ shardrouter.Answer, err error) error { return err }

// What a body gives back when it fails is no answer, and the key is free.
func TestKeyIsFreeAfterAnError(t *testing.T) {
	s := newSession(t, "(n INT)", 1)
	poor := errors.New("not enough gold")
	_, err := shardrouter.TxAnswer(t.Context(), s, dig{key: t.Name()}.opts(), func(context.Context, *sql.Tx) ([]byte, error) { return []byte("x"), poor })
	if !errors.Is(err, poor) {
		t.Errorf("got %v, want the body's error", err)
	}
	_, err = shardrouter.TxAnswer(t.Context(), s, dig{key: t.Name()}.opts(), func(context.Context, *sql.Tx) ([]byte, error) {
		return make([]byte, 1<<20+1), nil
	})
	if !errors.Is(err, shardrouter.ErrAnswerTooLong) {
		t.Errorf("got %v, want ErrAnswerTooLong", err)
	}
	answer, err := dig{key: t.Name(), text: "now"}.on(t.Context(), s)
	if err != nil || answer.Repeated || string(answer.Body) != "now" || count(t) != 1 {
		t.Errorf("got %q, repeated %v, %v and %d rows, want a first answer and one row", answer.Body, answer.Repeated, err, count(t))
	}
}

// Many requests with one key at once: one effect, one answer.
func TestKeyUsedByManyAtOnce(t *testing.T) {
	resetTable(t, "(n INT)")
	f := newFleet(t, 2)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s := &session{f: f, shard: f.Shards()[i%2]}
			defer s.end()
			answer, err := dig{key: t.Name(), text: "gold"}.on(t.Context(), s)
			if err != nil || string(answer.Body) != "gold" {
				t.Errorf("got %q, %v", answer.Body, err)
			}
		})
	}
	wg.Wait()
	if n := count(t); n != 1 {
		t.Errorf("%d rows, want one", n)
	}
}

// While the first is under way, the second waits, but not for ever, and leaves
// nothing behind on the server.
func TestKeyInProgress(t *testing.T) {
	resetTable(t, "(n INT)")
	f := newFleet(t, 1)
	inside, done := make(chan struct{}), make(chan struct{})
	var first sync.WaitGroup
	first.Go(func() {
		s := &session{f: f, shard: "server_1"}
		defer s.end()
		_, err := shardrouter.TxAnswer(t.Context(), s, dig{key: t.Name()}.opts(), func(context.Context, *sql.Tx) ([]byte, error) {
			close(inside)
			<-done
			return []byte("first"), nil
		})
		if err != nil {
			t.Errorf("the first got %v", err)
		}
	})
	<-inside
	s := &session{f: f, shard: "server_1"}
	defer s.end()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := (dig{key: t.Name()}).on(ctx, s); !errors.Is(err, shardrouter.ErrKeyInProgress) {
		t.Errorf("got %v, want ErrKeyInProgress", err)
	}
	waiting := lab.Open(t, server.DSN())
	lab.Eventually(t, 5*time.Second, "nobody waits on the server", func() bool {
		var n int
		err := waiting.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'INSERT INTO%shardhop_outcomes%'").Scan(&n)
		return err == nil && n == 0
	})
	close(done)
	first.Wait()
	answer, err := dig{key: t.Name()}.on(t.Context(), s)
	if err != nil || string(answer.Body) != "first" || !answer.Repeated {
		t.Errorf("afterwards got %q, repeated %v, %v", answer.Body, answer.Repeated, err)
	}
}
