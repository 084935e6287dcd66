package chaos_test

import (
	"cmp"
	"flag"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shardhop/shardhop/example-game/internal/app"
	"github.com/shardhop/shardhop/example-game/internal/chaos"
	"github.com/shardhop/shardhop/internal/lab"
)

// outage is how long no node of the shard takes writes in a planned switchover,
// at least.
var outage = flag.Duration("outage", 5*time.Second, "time without a writable node in a planned switchover")

const (
	// untilPromoted is how long the standby of a broken primary waits for its
	// operator.
	untilPromoted = 5 * time.Second
	// untilFrozenOut is the same for one that is frozen.
	untilFrozenOut = 2 * time.Second
	// untilThawed is how long a frozen primary stays so after that. Nobody has
	// made it read-only.
	untilThawed = 2 * time.Second
	// playFor is how long everybody plays before a fault and after it.
	playFor = 2 * time.Second
	// longestHold is what no request may wait for longer, on the busiest machine.
	longestHold = 50 * time.Second
)

// TestStandby breaks the primary of the only shard under the crowd. All of its
// faults are at the same time, each on servers and in a game of its own.
func TestStandby(t *testing.T) {
	for _, f := range []struct {
		name   string
		strike func(p *lab.Pair)
	}{
		{"planned switchover", func(p *lab.Pair) {
			p.Switchover(0, 1, *outage)
		}},
		{"primary killed", func(p *lab.Pair) {
			p.Node(0).Kill()
			<-time.After(untilPromoted)
			p.Promote(1)
		}},
		{"primary frozen, and thawed", func(p *lab.Pair) {
			p.Node(0).Freeze()
			<-time.After(untilFrozenOut)
			p.Promote(1)
			<-time.After(untilThawed)
			p.Node(0).Thaw()
		}},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			pair := lab.MariaDBPair(t, lab.SemiSync())
			pair.AwaitAcknowledged(0)
			s := startShard(t, pair.DSN())
			s.play(t, f.name, pair.Node(0).DSNAt, func() {
				if n := pair.Unacknowledged(0); n > 0 {
					t.Fatalf("%d transactions that the standby may lack: not semi-synchronous", n)
				}
				f.strike(pair)
			})
		})
	}
	t.Run("restart", func(t *testing.T) {
		t.Parallel()
		server := lab.MariaDB(t)
		s := startShard(t, server.DSN())
		s.play(t, "restart of the only node", server.DSNAt, func() {
			server.Stop()
			server.AddArgs("--innodb-buffer-pool-size=64M")
			server.Start()
			var size int
			if err := lab.Open(t, server.RootDSN()).QueryRow("SELECT @@innodb_buffer_pool_size").Scan(&size); err != nil || size != 64<<20 {
				t.Errorf("buffer pool of %d bytes, %v", size, err)
			}
		})
	})
}

// soleShard is a game whose players are all on one shard.
type soleShard struct {
	game  *app.App
	crowd *chaos.Crowd
}

// startShard starts the game with dsn as its only shard.
func startShard(t *testing.T, dsn string) *soleShard {
	t.Helper()
	random := cmp.Or(*seed, rand.Uint64())
	t.Logf("-seed %d", random)
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	game, err := app.Start(t.Context(), []string{
		"ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0", "REDIS_URL=" + lab.Redis(t).URL(),
		"SHARDS=server_1", "SHARD_SERVER_1_DSN=" + dsn,
	}, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(game.Shutdown)
	s := &soleShard{game: game}
	s.awaitUp(t)
	if s.crowd, err = chaos.NewCrowd(game.URL(), players, random); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.crowd.Close)
	return s
}

// play has everybody play while fault happens, and compares the rows of the node
// to which the game writes then, dsnAt its address, with what the players were
// told.
func (s *soleShard) play(t *testing.T, name string, dsnAt func(addr string) string, fault func()) {
	t.Helper()
	score := s.crowd.Play(func() {
		<-time.After(playFor)
		fault()
		s.awaitUp(t)
		<-time.After(playFor)
	})
	rows := read(t, lab.Open(t, dsnAt(s.awaitUp(t))))
	audit := s.crowd.Book().Audit(rows)
	t.Logf("\n%s\n%s", chaos.Header, chaos.Line(name, 1, &score, audit))
	if !audit.Clean() {
		t.Errorf("%v", audit)
	}
	if score.Failed > 0 {
		t.Errorf("%d of %d requests failed: %v", score.Failed, score.Requests, score.Kinds)
	}
	if score.Stale > 0 {
		t.Errorf("%d reads came too early", score.Stale)
	}
	if wait := score.Longest(); wait > longestHold {
		t.Errorf("a request took %v", wait)
	}
}

// awaitUp waits until the game uses its shard, and returns the address of the
// node to which it writes.
func (s *soleShard) awaitUp(t *testing.T) (writer string) {
	t.Helper()
	lab.Eventually(t, syncTimeout, "the game uses its shard", func() bool {
		shards := shardsOf(t, s.game)
		writer = shards[0].Writer
		return !shards[0].out()
	})
	return writer
}
