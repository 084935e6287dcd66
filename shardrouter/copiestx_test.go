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

// A server freezes when COMMIT is sent. A copy of it proves that nothing was
// committed, and runs the transaction again; a shard of other rows can prove
// nothing and runs nothing.
func TestUnknownOutcomeIsResolvedOnCopiesOnly(t *testing.T) {
	cluster := lab.Galera(t, 3)
	tests := []struct {
		name      string
		servers   []*lab.MariaDBServer
		want      error
		elsewhere int // rows on server_2 afterwards
	}{
		{"copies", cluster, nil, 1},
		{"other rows", []*lab.MariaDBServer{lab.MariaDB(t), lab.MariaDB(t)}, shardrouter.ErrOutcomeUnknown, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := faultproxy.New(t, tt.servers[0].Addr())
			cfg := shardrouter.Config{Shards: members(tt.servers...)}
			cfg.Shards[0].DSN = shardrouter.DSN(tt.servers[0].DSNAt(path.Addr()))
			for _, s := range tt.servers {
				lab.Exec(t, s.DSN(), "CREATE TABLE IF NOT EXISTS tx (n INT)", shardrouter.OutcomeDDL) // nothing but the rows is in the way
			}
			s := &session{f: &fleet{Router: start(t, cfg)}, shard: "server_1"}
			defer s.end()
			err := shardrouter.Tx(t.Context(), s, withRow, func(ctx context.Context, tx *sql.Tx) error {
				if _, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES (1)"); err != nil {
					return err
				}
				path.SetMode(faultproxy.Freeze)
				return nil
			})
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			var rows int
			if err := lab.Open(t, tt.servers[1].DSN()).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM tx").Scan(&rows); err != nil {
				t.Fatal(err)
			}
			if rows != tt.elsewhere {
				t.Errorf("%d rows on server_2, want %d", rows, tt.elsewhere)
			}
		})
	}
}
