package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/internal/scriptserver"
	"github.com/shardhop/shardhop/shardrouter"
)

// A server takes no connections any more, so that its shard is down, while the
// answer to a COMMIT is on its way. It is awaited, and nothing is unknown.
func TestAnswerOnItsWayOutlivesItsShard(t *testing.T) {
	for range 20 {
		if commitWhileGoingDown(t) {
			return
		}
	}
	t.Fatal("the machine is too busy for a shard to go down while an answer is awaited")
}

// commitWhileGoingDown reports whether the shard was down in time.
func commitWhileGoingDown(t *testing.T) bool {
	t.Helper()
	const inTime = 100 * time.Millisecond
	s, other, release := scriptserver.New(t), scriptserver.New(t), make(chan struct{})
	s.Answer("COMMIT", scriptserver.After(release, scriptserver.OK()))
	router := open(t, shardrouter.Config{
		HealthInterval: 100 * time.Millisecond, Logger: quiet(),
		Shards: []shardrouter.Shard{
			{Name: "server_1", DSN: shardrouter.DSN(s.DSN())}, {Name: "server_2", DSN: shardrouter.DSN(other.DSN())},
		},
	})
	await(t, router, healthcache.Up, "server_1", "server_2")
	src, runs, ended := &session{f: &fleet{Router: router}, shard: "server_1"}, 0, make(chan error)
	defer src.end()
	go func() {
		ended <- shardrouter.Tx(t.Context(), src, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
			runs++
			_, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES (1)")
			return err
		})
	}()
	lab.Eventually(t, 10*time.Second, "COMMIT is sent", func() bool { return s.Got("COMMIT") == 1 })
	sent := time.Now()
	s.Refuse()
	router.Health().Suspect("server_1", "for the test")
	await(t, router, healthcache.Down, "server_1")
	down := time.Now()
	close(release)
	err := <-ended
	if down.Sub(sent) > inTime {
		return false
	}
	if err != nil || runs != 1 || other.Got("INTO tx") != 0 {
		t.Errorf("got %v after %d runs, want the answer to the COMMIT", err, runs)
	}
	return true
}

// An answer that was on its way when the shard went down, and does not come, is not
// awaited for longer than that.
func TestAnswerThatDoesNotComeIsCutOff(t *testing.T) {
	s := scriptserver.New(t)
	s.Answer("UPDATE", scriptserver.Silence())
	router := open(t, shardrouter.Config{
		HealthInterval: 100 * time.Millisecond, Logger: quiet(),
		Shards: []shardrouter.Shard{{Name: "server_1", DSN: shardrouter.DSN(s.DSN())}},
	})
	await(t, router, healthcache.Up, "server_1")
	l, err := router.Lease(t.Context(), on("server_1"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	ended := make(chan error, 1)
	go func() { ended <- exec(t.Context(), l.Conn(), "UPDATE tx SET n = 1") }()
	lab.Eventually(t, 10*time.Second, "it is sent", func() bool { return s.Got("UPDATE") == 1 })
	s.Refuse()
	router.Health().Suspect("server_1", "for the test")
	select {
	case err := <-ended:
		if !errors.Is(err, shardrouter.ErrOutcomeUnknown) {
			t.Errorf("got %v, want ErrOutcomeUnknown", err)
		}
	case <-time.After(15 * time.Second): // half of the read timeout
		t.Error("it is still awaited")
	}
}
