package shardrouter_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// A shard gets a standby at run time, and a new shard with a standby is
// prepared and served, each by its recorded writer.
func TestReloadOfShardsWithStandbys(t *testing.T) {
	pair, standby := lab.MariaDBPair(t), lab.MariaDB(t, lab.WithArgs("--read-only=1"))
	cfg := shardrouter.Config{
		Redis:          lab.Redis(t).Client(),
		HealthInterval: 100 * time.Millisecond,
		Logger:         quiet(),
		Shards:         []shardrouter.Shard{{Name: "server_1", DSN: dsnAt(server.Addr())}},
	}
	r, err := shardrouter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var prepared []string
	cfg.Prepare = func(_ context.Context, shard string, _ *sql.Conn) error {
		prepared = append(prepared, shard)
		return nil
	}
	cfg.Shards = []shardrouter.Shard{
		{Name: "server_1", DSN: dsnAt(server.Addr() + "," + standby.Addr())},
		{Name: "server_2", DSN: shardrouter.DSN(pair.DSN())},
	}
	if err := r.Reload(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if len(prepared) != 1 || prepared[0] != "server_2" {
		t.Errorf("prepared: %v, want server_2", prepared)
	}
	for shard, addr := range map[string]string{"server_1": server.Addr(), "server_2": pair.Node(0).Addr()} {
		l, err := r.Acquire(t.Context(), shard)
		if err != nil {
			t.Errorf("%s: %v", shard, err)
			continue
		}
		if l.Node() != addr {
			t.Errorf("%s is served by %s, want %s", shard, l.Node(), addr)
		}
		l.Release()
	}
	for _, s := range r.Stats() {
		if s.WriterEpoch != 1 {
			t.Errorf("%s: epoch %d of its writer, want 1", s.Shard, s.WriterEpoch)
		}
	}
}
