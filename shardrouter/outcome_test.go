package shardrouter_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// An account that may not create tables.
func TestNoTableOfOutcomes(t *testing.T) {
	own := lab.MariaDB(t)
	lab.Exec(t, own.RootDSN(), "CREATE TABLE game.tx (n INT)",
		"CREATE USER poor@'%' IDENTIFIED BY 'poor-secret'", "GRANT SELECT, INSERT, UPDATE, DELETE ON game.* TO poor@'%'")
	var log bytes.Buffer
	router, err := shardrouter.New(shardrouter.Config{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Shards: []shardrouter.Shard{{Name: "server_1", DSN: shardrouter.DSN(strings.Replace(own.DSN(), "app:app-secret", "poor:poor-secret", 1))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{f: &fleet{Router: router}, shard: "server_1"}
	for range 2 {
		if err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, insertOne); err != nil {
			t.Errorf("without a key: %v, want to go on without a row", err)
		}
	}
	_, err = dig{key: "k"}.on(t.Context(), s)
	if !errors.Is(err, shardrouter.ErrNoOutcomeTable) || !strings.Contains(err.Error(), shardrouter.OutcomeDDL) {
		t.Errorf("with a key: got %v, want ErrNoOutcomeTable and the statement that mends it", err)
	}
	s.end()
	_ = router.Close()
	if n := strings.Count(log.String(), "no table of outcome rows"); n != 1 {
		t.Errorf("told %d times, want once:\n%s", n, log.String())
	}
}

func insertOne(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES (1)")
	return err
}

// Rows that are too old are purged, by whichever instance has the turn, and the
// others stay.
func TestPurge(t *testing.T) {
	own := lab.MariaDB(t)
	lab.Exec(t, own.DSN(), shardrouter.OutcomeDDL,
		"INSERT INTO shardhop_outcomes (id, created) SELECT UNHEX(SHA2(seq, 256)), UNIX_TIMESTAMP() - 3600 FROM seq_1_to_3000",
		"INSERT INTO shardhop_outcomes (id, created) SELECT UNHEX(SHA2(seq, 256)), UNIX_TIMESTAMP() + 3600 FROM seq_3001_to_4000")
	rdb := lab.Redis(t).Client()
	if err := rdb.Set(t.Context(), "db:purge:server_1", "nobody, for good", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		start(t, shardrouter.Config{
			Shards: []shardrouter.Shard{
				{Name: "server_1", DSN: shardrouter.DSN(own.DSN())},
				{Name: "without_table", DSN: shardrouter.DSN(strings.Replace(own.RootDSN(), "/game", "/mysql", 1)), Group: "other"},
			},
			ReadTimeout: 10 * time.Second, HoldTimeout: shardrouter.HoldNone, OutcomeRetention: time.Minute, Redis: rdb,
		})
	}
	db := lab.Open(t, own.DSN())
	lab.Eventually(t, 30*time.Second, "the old rows are gone", func() bool {
		var old, young int
		err := db.QueryRowContext(t.Context(), "SELECT SUM(created < UNIX_TIMESTAMP()), SUM(created > UNIX_TIMESTAMP()) FROM shardhop_outcomes").Scan(&old, &young)
		if err == nil && young != 1000 {
			t.Fatalf("%d of 1000 young rows are left", young)
		}
		return err == nil && old == 0
	})
	if n, err := rdb.Exists(t.Context(), "db:purge:server_1").Result(); err != nil || n > 1 {
		t.Errorf("the turn: %d, %v", n, err)
	}
}
