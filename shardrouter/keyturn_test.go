package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// One who repeats a slow request again and again does not take the places of
// others: all but two of the repeats are told soon to try again, and no connection
// waits on the server for them. The first and the one that waits for it get the one
// answer.
func TestSlowKeyThatIsRepeated(t *testing.T) {
	resetTable(t, "(n INT)")
	const places, repeats = 12, 11
	f := newFleet(t, 1, func(c *shardrouter.Config) { c.Shards[0].MaxConns = places })
	inside, done := make(chan struct{}), make(chan struct{})
	var calls sync.WaitGroup
	calls.Go(func() {
		s := &session{f: f, shard: "server_1"}
		defer s.end()
		_, err := shardrouter.TxAnswer(t.Context(), s, dig{key: t.Name()}.opts(), func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			close(inside)
			<-done
			return []byte("first"), insertOne(ctx, tx)
		})
		if err != nil {
			t.Errorf("the first got %v", err)
		}
	})
	<-inside
	results := make(chan error, repeats)
	for range repeats {
		calls.Go(func() {
			s := &session{f: f, shard: "server_1"}
			defer s.end()
			answer, err := dig{key: t.Name()}.on(t.Context(), s)
			if err == nil && (string(answer.Body) != "first" || !answer.Repeated) {
				err = errors.New("another answer: " + string(answer.Body))
			}
			results <- err
		})
	}
	refused := 0
	for range repeats - 1 {
		select {
		case err := <-results:
			if !errors.Is(err, shardrouter.ErrKeyInProgress) {
				t.Errorf("a repeat got %v, want ErrKeyInProgress", err)
			}
			refused++
		case <-time.After(4 * time.Second): // less than one waits for the row
			t.Fatalf("%d of %d repeats were refused in four seconds", refused, repeats-1)
		}
	}
	lab.Eventually(t, 5*time.Second, "two places are taken", func() bool { return f.Stats()[0].InUse == 2 })
	close(done)
	if err := <-results; err != nil {
		t.Errorf("the repeat that waited got %v", err)
	}
	calls.Wait()
	answer, err := dig{key: t.Name()}.on(t.Context(), sessionOf(t, f))
	if err != nil || !answer.Repeated || count(t) != 1 {
		t.Errorf("afterwards got repeated %v, %v and %d rows", answer.Repeated, err, count(t))
	}
}

func sessionOf(t *testing.T, f *fleet) *session {
	t.Helper()
	s := &session{f: f, shard: "server_1"}
	t.Cleanup(s.end)
	return s
}

// A key that has been committed is no trouble for a crowd: each call takes a moment.
func TestCrowdWithAFinishedKey(t *testing.T) {
	resetTable(t, "(n INT)")
	f := newFleet(t, 1)
	first := dig{key: t.Name(), text: "gold"}
	if _, err := first.on(t.Context(), sessionOf(t, f)); err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			s := &session{f: f, shard: "server_1"}
			defer s.end()
			if answer, err := first.on(t.Context(), s); err != nil || string(answer.Body) != "gold" || !answer.Repeated {
				t.Errorf("got %q, repeated %v, %v", answer.Body, answer.Repeated, err)
			}
		})
	}
	calls.Wait()
}
