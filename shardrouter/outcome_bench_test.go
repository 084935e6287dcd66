package shardrouter_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// BenchmarkTx measures what the outcome row costs a small transaction, and what
// a key and its answer cost beyond it. The kinds take turns, so that what else
// the machine does falls on all of them alike; the ratio is to "without a row".
func BenchmarkTx(b *testing.B) {
	lab.Exec(b, server.RootDSN(), "CREATE OR REPLACE TABLE game.tx (id INT PRIMARY KEY, n INT)", "INSERT INTO game.tx VALUES (1, 0)")
	router, err := shardrouter.New(shardrouter.Config{
		Logger: quiet(),
		Shards: []shardrouter.Shard{{Name: "server_1", DSN: dsnAt(server.Addr())}},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer router.Close()
	s := &session{f: &fleet{Router: router}, shard: "server_1"}
	defer s.end()
	body := func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		if _, err := tx.ExecContext(ctx, "UPDATE tx SET n = n + 1 WHERE id = 1"); err != nil {
			return nil, err
		}
		var n int
		return []byte(`{"gold":1}`), tx.QueryRowContext(ctx, "SELECT n FROM tx WHERE id = 1").Scan(&n)
	}
	kinds := []struct {
		name string
		opts func(n int) shardrouter.TxOptions
		took time.Duration
	}{
		{name: "without", opts: func(int) shardrouter.TxOptions { return shardrouter.TxOptions{NoOutcomeRow: true} }},
		{name: "row", opts: func(int) shardrouter.TxOptions { return shardrouter.TxOptions{} }},
		{name: "key", opts: func(n int) shardrouter.TxOptions {
			return shardrouter.TxOptions{Key: time.Now().String(), Scope: "ada", Request: []byte{byte(n)}}
		}},
	}
	n := 0
	for b.Loop() {
		n++
		for i := range kinds {
			began := time.Now()
			if _, err := shardrouter.TxAnswer(b.Context(), s, kinds[i].opts(n), body); err != nil {
				b.Fatal(err)
			}
			kinds[i].took += time.Since(began)
		}
	}
	for _, k := range kinds {
		b.ReportMetric(float64(k.took.Microseconds())/float64(n), k.name+"-µs/tx")
		b.ReportMetric(float64(k.took)/float64(kinds[0].took), k.name+"-ratio")
	}
}

// BenchmarkDial measures a connection with its introduction, of which a shard
// of a single server would need none, beside one without.
func BenchmarkDial(b *testing.B) {
	router, err := shardrouter.New(shardrouter.Config{
		Logger: quiet(),
		Shards: []shardrouter.Shard{{Name: "server_1", DSN: dsnAt(server.Addr())}},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer router.Close()
	var bare, whole time.Duration
	n := 0
	for b.Loop() {
		n++
		began := time.Now()
		shardrouter.Dial(b.Context(), b, router, "server_1", false)
		bare += time.Since(began)
		began = time.Now()
		shardrouter.Dial(b.Context(), b, router, "server_1", true)
		whole += time.Since(began)
	}
	b.ReportMetric(float64(bare.Microseconds())/float64(n), "bare-µs/dial")
	b.ReportMetric(float64(whole.Microseconds())/float64(n), "introduced-µs/dial")
}
