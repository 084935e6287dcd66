package shardrouter_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/internal/scriptserver"
	"github.com/shardhop/shardhop/shardrouter"
)

// A server that has not noticed the loss of a connection keeps the locks of its
// transaction. The next run wants the same rows.
func TestTxEndsTheThreadThatHoldsItsLocks(t *testing.T) {
	strict := lab.MariaDB(t, lab.WithArgs("--innodb-lock-wait-timeout=3"))
	db := lab.Open(t, strict.DSN())
	tests := []struct {
		name, reason string
		fault        func(*faultproxy.Proxy)
		slow         string // what the first run ends with
		opts         shardrouter.TxOptions
	}{
		{"packets are lost", "the server waits for the next statement",
			func(p *faultproxy.Proxy) { p.ForsakeAfter([]byte("slow"), faultproxy.BeforeForward) },
			"SELECT 1 AS slow", shardrouter.TxOptions{}},
		{"the server is busy", "it looks at the socket when the statement is done",
			func(p *faultproxy.Proxy) { p.CutAfter([]byte("SLEEP"), faultproxy.AfterForward) },
			"SELECT SLEEP(30)", shardrouter.TxOptions{}},
		{"with a key", "the outcome row is locked as well",
			func(p *faultproxy.Proxy) { p.ForsakeAfter([]byte("slow"), faultproxy.BeforeForward) },
			"SELECT 1 AS slow", shardrouter.TxOptions{Key: "k"}},
		{"at COMMIT", "what became of it has to be found out before",
			func(p *faultproxy.Proxy) { p.ForsakeAfter([]byte("COMMIT"), faultproxy.BeforeForward) },
			"SELECT 1", shardrouter.TxOptions{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			lab.Exec(t, strict.DSN(), "CREATE OR REPLACE TABLE ghosts (id INT PRIMARY KEY, n INT)", "INSERT INTO ghosts VALUES (1, 0)")
			proxy := faultproxy.New(t, strict.Addr())
			router, err := shardrouter.New(shardrouter.Config{
				Logger: quiet(),
				Shards: []shardrouter.Shard{{Name: "server_1", DSN: shardrouter.DSN(strict.DSNAt(proxy.Addr()))}},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer router.Close()
			s := &session{f: &fleet{Router: router}, shard: "server_1"}
			defer s.end()
			tt.fault(proxy)
			runs := 0
			_, err = shardrouter.TxAnswer(t.Context(), s, tt.opts, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
				runs++
				if _, err := tx.ExecContext(ctx, "UPDATE ghosts SET n = n + 1 WHERE id = 1"); err != nil {
					return nil, err
				}
				if runs == 1 {
					_, _ = tx.ExecContext(ctx, tt.slow)
				}
				return nil, nil
			})
			var n int
			if err := db.QueryRowContext(t.Context(), "SELECT n FROM ghosts").Scan(&n); err != nil {
				t.Fatal(err)
			}
			if err != nil || n != 1 || runs != 2 {
				t.Errorf("got %v after %d runs, and %d: want the whole of the second run: %s", err, runs, n, tt.reason)
			}
		})
	}
}

// A proxy that speaks MySQL has numbers of its own for connections, and takes the
// server's number for that of somebody else.
func TestNobodyElseIsEndedBehindAProxy(t *testing.T) {
	tests := []struct {
		name   string
		number string // CONNECTION_ID(), where it is not that of the greeting
		kills  int
	}{
		{"a server", "", 1},
		{"a proxy", "4711", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := scriptserver.New(t)
			if tt.number != "" {
				s.Answer("@@global.wsrep_on", scriptserver.Rows([]string{"read_only", "thread", "life", "server", "gtid", "commits", "packet", "galera", "cluster"},
					[]string{"0", tt.number, "one", "one", "", "1NO_CHAIN", "16777216", "OFF", ""}))
			}
			src := &session{f: &fleet{Router: routerOf(t, s.DSN())}, shard: "server_1"}
			defer src.end()
			s.Answer("INTO tx", scriptserver.HangUp())
			runs := 0
			err := shardrouter.Tx(t.Context(), src, withRow, func(ctx context.Context, tx *sql.Tx) error {
				if runs++; runs > 1 {
					s.Answer("INTO tx", scriptserver.OK())
				}
				return insertOne(ctx, tx)
			})
			if n := s.Got("KILL CONNECTION"); err != nil || runs != 2 || n != tt.kills {
				t.Errorf("got %v after %d runs and %d KILLs, want success after two, and %d", err, runs, n, tt.kills)
			}
		})
	}
}
