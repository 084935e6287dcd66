package shardrouter_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// turnTaken is a redis.Hook by which, until it is over, every turn that is asked
// for is another instance's.
type turnTaken struct {
	lab.NoHook
	key   string
	other redis.UniversalClient
	asked atomic.Int64
	over  atomic.Bool
}

func (h *turnTaken) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if slices.Contains(cmd.Args(), any(h.key)) && !h.over.Load() {
			if err := h.other.Set(ctx, h.key, "another", time.Second).Err(); err != nil {
				return err
			}
			h.asked.Add(1)
		}
		return next(ctx, cmd)
	}
}

// Nothing is purged while it is another instance's turn. Then it is, in small
// chunks.
func TestPurgeTakesTurnsAndSmallChunks(t *testing.T) {
	const old, chunk = 1200, 500
	own, rds := lab.MariaDB(t), lab.Redis(t)
	lab.Exec(t, own.DSN(), shardrouter.OutcomeDDL, fmt.Sprintf(
		"INSERT INTO shardhop_outcomes (id, created) SELECT UNHEX(SHA2(seq, 256)), UNIX_TIMESTAMP() - 3600 FROM seq_1_to_%d", old))
	lab.Exec(t, own.RootDSN(), "SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = 1")
	hook := &turnTaken{key: "db:purge:server_1", other: rds.Client()}
	rdb := rds.Client()
	rdb.AddHook(hook)
	start(t, shardrouter.Config{
		Shards:      []shardrouter.Shard{{Name: "server_1", DSN: shardrouter.DSN(own.DSN())}},
		ReadTimeout: 10 * time.Second, HoldTimeout: shardrouter.HoldNone, OutcomeRetention: time.Minute, Redis: rdb,
	})
	db := lab.Open(t, own.RootDSN())
	left := func() (n int) {
		if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM shardhop_outcomes").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	lab.Eventually(t, 30*time.Second, "the turn was asked for twice", func() bool { return hook.asked.Load() >= 2 })
	if n := left(); n != old {
		t.Errorf("%d of %d rows are left in another instance's turn", n, old)
	}
	hook.over.Store(true)
	lab.Eventually(t, 30*time.Second, "the old rows are gone", func() bool { return left() == 0 })

	var deletes, most int
	const deleted = "(LENGTH(argument) - LENGTH(REPLACE(argument, 'x''', ''))) DIV 2" // keys in a statement
	query := "SELECT COUNT(*), MAX(" + deleted + ") FROM mysql.general_log WHERE argument LIKE 'DELETE FROM%shardhop_outcomes%'"
	if err := db.QueryRowContext(t.Context(), query).Scan(&deletes, &most); err != nil {
		t.Fatal(err)
	}
	if deletes < old/chunk || most > chunk {
		t.Errorf("%d statements deleted %d rows, %d in one; want no more than %d in any", deletes, old, most, chunk)
	}
}

// Between the purge's look and its DELETE, other hands purge an old row, and its key
// is used again. The new row is not old.
func TestPurgeSparesAKeyThatIsUsedAgain(t *testing.T) {
	id := fmt.Sprintf("x'%x'", sha256.Sum256([]byte("used again")))
	insert := "INSERT INTO shardhop_outcomes (id, created) VALUES (" + id + ", UNIX_TIMESTAMP() - %d)"
	lab.Exec(t, server.DSN(), shardrouter.OutcomeDDL, "DELETE FROM shardhop_outcomes", fmt.Sprintf(insert, 3600))
	db := lab.Open(t, server.RootDSN())
	number := func(query string) (n int) {
		if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	start(t, shardrouter.Config{
		Shards:      []shardrouter.Shard{{Name: "server_1", DSN: dsnAt(server.Addr())}},
		ReadTimeout: 10 * time.Second, HoldTimeout: shardrouter.HoldNone, OutcomeRetention: time.Minute,
	})
	other, err := lab.Open(t, server.DSN()).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Rollback() }()
	for _, statement := range []string{"DELETE FROM shardhop_outcomes WHERE id = " + id, fmt.Sprintf(insert, 0)} {
		if _, err := other.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	const deletes = "FROM information_schema.processlist WHERE info LIKE 'DELETE FROM%shardhop_outcomes%'"
	lab.Eventually(t, 30*time.Second, "the purge waits for the row", func() bool { return number("SELECT COUNT(*) "+deletes) == 1 })
	if err := other.Commit(); err != nil {
		t.Fatal(err)
	}
	lab.Eventually(t, 10*time.Second, "the purge goes on", func() bool { return number("SELECT COUNT(*) "+deletes) == 0 })
	if n := number("SELECT COUNT(*) FROM game.shardhop_outcomes"); n != 1 {
		t.Error("the row of the key that is in use was purged")
	}
}
