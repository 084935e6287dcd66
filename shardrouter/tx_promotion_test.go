package shardrouter_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// The primary of a semi-synchronous pair is killed at some moment of two
// transactions, of which one has a client's key, and the standby is promoted:
// each is committed once.
func TestTxOutlivesItsPrimary(t *testing.T) {
	for _, m := range []struct {
		name, at string
		when     faultproxy.When
	}{
		{"before the first statement", "START TRANSACTION", faultproxy.BeforeForward},
		{"in the middle", "INTO tx", faultproxy.AfterReply},
		{"with COMMIT on its way", "COMMIT", faultproxy.AfterForward},
		{"with COMMIT confirmed", "COMMIT", faultproxy.AfterReply},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			pair := lab.MariaDBPair(t, lab.SemiSync())
			pair.AwaitAcknowledged(0)
			lab.Exec(t, pair.Node(0).DSN(), "CREATE TABLE tx (n INT)", shardrouter.OutcomeDDL)
			one, two := newWitness(t, pair), newWitness(t, pair)
			var cut []<-chan struct{}
			for _, w := range []*witness{one, two} {
				cut = append(cut, w.proxy.SwitchAfter([]byte(m.at), m.when, faultproxy.Cut))
			}
			without, with := one.insert(t.Context(), 1, ""), two.insert(t.Context(), 2, "key")
			for _, reached := range cut {
				select {
				case <-reached:
				case err := <-without:
					t.Fatalf("it has ended before: %v", err)
				case err := <-with:
					t.Fatalf("it has ended before: %v", err)
				}
			}
			pair.Node(0).Kill()
			pair.Promote(1)
			for _, err := range []error{<-without, <-with} {
				if err != nil {
					t.Errorf("%v, want success on the promoted node", err)
				}
			}
			var rows, different int
			if err := lab.Open(t, pair.Node(1).DSN()).QueryRowContext(t.Context(), "SELECT COUNT(*), COUNT(DISTINCT n) FROM tx").Scan(&rows, &different); err != nil {
				t.Fatal(err)
			}
			if rows != 2 || different != 2 {
				t.Errorf("%d rows of %d transactions, want one of each of two", rows, different)
			}
		})
	}
}

// witness is an instance of a fleet of its own that reaches the primary through
// a proxy.
type witness struct {
	proxy  *faultproxy.Proxy
	router *shardrouter.Router
}

func newWitness(t *testing.T, pair *lab.Pair) *witness {
	t.Helper()
	w := &witness{proxy: faultproxy.New(t, pair.Node(0).Addr())}
	w.router = start(t, shardrouter.Config{
		Redis: lab.Redis(t).Client(), HealthInterval: 200 * time.Millisecond, HoldTimeout: time.Minute, Logger: quiet(),
		Shards: []shardrouter.Shard{{Name: "server_1", DSN: shardrouter.DSN(pair.Node(0).DSNAt(w.proxy.Addr() + "," + pair.Node(1).Addr()))}},
	})
	return w
}

// insert inserts a row in a transaction, in the background.
func (w *witness) insert(ctx context.Context, n int, key string) <-chan error {
	done := make(chan error, 1)
	go func() {
		src := &source{r: w.router}
		defer src.end()
		_, err := shardrouter.TxAnswer(ctx, src, shardrouter.TxOptions{Key: key}, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			_, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES (?)", n)
			return []byte("dug"), err
		})
		done <- err
	}()
	return done
}
