package shardrouter_test

import (
	"context"
	"database/sql"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// lag is how long a member of the cluster is kept from applying what the
// others commit.
const lag = 300 * time.Millisecond

// wsrep is a cluster of three behind a router, whose path to server_1 can be
// broken, and whose members can be kept behind.
type wsrep struct {
	*shardrouter.Router
	path *faultproxy.Proxy // to server_1
	dbs  []*sql.DB         // past the router
	root []*sql.Conn
	dsns []string
	last int // value written
}

func newWsrep(t *testing.T, change ...func(*shardrouter.Config)) *wsrep {
	t.Helper()
	cluster := lab.Galera(t, 3)
	lab.Exec(t, cluster[0].DSN(), "CREATE TABLE gold (id INT PRIMARY KEY, amount INT)", "INSERT INTO gold VALUES (1, 0)")
	w := &wsrep{path: faultproxy.New(t, cluster[0].Addr())}
	cfg := shardrouter.Config{Shards: members(cluster...)}
	cfg.Shards[0].DSN = shardrouter.DSN(cluster[0].DSNAt(w.path.Addr()))
	for _, node := range cluster {
		w.dsns = append(w.dsns, node.DSN())
		w.dbs = append(w.dbs, lab.Open(t, node.DSN()))
		root, err := lab.Open(t, node.RootDSN()).Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = root.Close() })
		w.root = append(w.root, root)
	}
	for _, c := range change {
		c(&cfg)
	}
	w.Router = start(t, cfg)
	return w
}

// hold keeps a member from applying anything. The end is the caller's.
func (w *wsrep) hold(t *testing.T, member int) (end func()) {
	t.Helper()
	if _, err := w.root[member].ExecContext(t.Context(), "FLUSH TABLES WITH READ LOCK"); err != nil {
		t.Fatal(err)
	}
	return func() { _, _ = w.root[member].ExecContext(context.Background(), "UNLOCK TABLES") }
}

// soon has a member go on after the lag; what it returns, at once.
func soon(release func()) func() {
	timer := time.AfterFunc(lag, release)
	return func() {
		if timer.Stop() {
			release()
		}
	}
}

// write commits on one member past the router.
func (w *wsrep) write(t *testing.T, member int) {
	t.Helper()
	w.last++
	if _, err := w.dbs[member].ExecContext(t.Context(), "UPDATE gold SET amount = ?", w.last); err != nil {
		t.Fatal(err)
	}
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func amount(t *testing.T, on querier) (amount int) {
	t.Helper()
	if err := on.QueryRowContext(t.Context(), "SELECT amount FROM gold").Scan(&amount); err != nil {
		t.Fatal(err)
	}
	return amount
}

// A player writes on server_1 and is served by server_2 next, which has not
// applied the write yet.
func TestFirstUseOfAShardSeesTheLastWrite(t *testing.T) {
	w := newWsrep(t)
	tests := []struct {
		name   string
		before func()
		lease  func() (*shardrouter.Lease, error)
		after  func()
	}{
		{
			"deliberate move", func() {},
			func() (*shardrouter.Lease, error) { return w.Acquire(t.Context(), "server_2") }, func() {},
		},
		{
			"new session", func() { w.drain(t, "server_1", "server_3") },
			func() (*shardrouter.Lease, error) { return w.Lease(t.Context(), on(""), "") },
			func() { w.undrain(t, "server_1", "server_3") },
		},
		{
			"drain", func() { w.drain(t, "server_1") },
			func() (*shardrouter.Lease, error) { return w.Lease(t.Context(), on("server_1"), "") },
			func() { w.undrain(t, "server_1") },
		},
		{
			"session of a shard that is gone", func() { w.drain(t, "server_1", "server_3") },
			func() (*shardrouter.Lease, error) { return w.Lease(t.Context(), on("server_9"), "") },
			func() { w.undrain(t, "server_1", "server_3") },
		},
		{
			"rotation", func() { w.path.SetMode(faultproxy.Refuse) },
			func() (*shardrouter.Lease, error) { return w.Lease(t.Context(), on("server_1"), "") },
			func() { w.path.SetMode(faultproxy.Pass) },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.before()
			defer tt.after()
			release := w.hold(t, 1)
			w.write(t, 0)
			if got := amount(t, w.dbs[1]); got == w.last {
				t.Fatal("server_2 shows the write at once: this proves nothing")
			}
			defer soon(release)()
			l, err := tt.lease()
			if err != nil {
				t.Fatal(err)
			}
			defer l.Release()
			if l.Shard() != "server_2" {
				t.Fatalf("served by %s, want server_2", l.Shard())
			}
			if got := amount(t, l.Conn()); got != w.last {
				t.Errorf("read %d, want %d", got, w.last)
			}
		})
	}
}

func (w *wsrep) drain(t *testing.T, shards ...string) {
	t.Helper()
	for _, s := range shards {
		if err := w.Health().Drain(t.Context(), s, "test", 0); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *wsrep) undrain(t *testing.T, shards ...string) {
	t.Helper()
	for _, s := range shards {
		if err := w.Health().Undrain(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// What a detour wrote is there when the session is served by its own shard
// again, and so is what a request wrote that began before its session was moved.
func TestWritesBesideTheRouteAreSeen(t *testing.T) {
	var broken atomic.Bool
	var w *wsrep
	w = newWsrep(t, func(c *shardrouter.Config) {
		c.HealthInterval = 2 * time.Second
		c.Observer.Attempt = func(shardrouter.Attempt) {
			if broken.Load() {
				w.path.SetMode(faultproxy.Pass)
			}
		}
	})
	update := func(l *shardrouter.Lease) {
		t.Helper()
		w.last++
		if _, err := l.Conn().ExecContext(t.Context(), "UPDATE gold SET amount = ?", w.last); err != nil {
			t.Fatal(err)
		}
		l.Release()
	}
	lease := func(session, want string) *shardrouter.Lease {
		t.Helper()
		l, err := w.Lease(t.Context(), on(session), "")
		if err != nil {
			t.Fatal(err)
		}
		if l.Shard() != want {
			t.Fatalf("a session on %s was served by %s, want %s", session, l.Shard(), want)
		}
		return l
	}

	t.Run("detour", func(t *testing.T) {
		broken.Store(true)
		w.path.SetMode(faultproxy.Refuse)
		detour := lease("server_1", "server_2")
		if !detour.Detour() {
			t.Fatal("no detour")
		}
		broken.Store(false)
		release := w.hold(t, 0)
		update(detour)
		defer soon(release)()
		back := lease("server_1", "server_1")
		defer back.Release()
		if got := amount(t, back.Conn()); got != w.last {
			t.Errorf("back on its shard the session reads %d, want %d", got, w.last)
		}
	})
	t.Run("request of before a move", func(t *testing.T) {
		slow := lease("server_1", "server_1")
		w.drain(t, "server_1")
		defer w.undrain(t, "server_1")
		lease("server_1", "server_2").Release()
		release := w.hold(t, 1)
		update(slow)
		defer soon(release)()
		moved := lease("server_2", "server_2")
		defer moved.Release()
		if got := amount(t, moved.Conn()); got != w.last {
			t.Errorf("on its new shard the session reads %d, want %d", got, w.last)
		}
	})
}

// A member that cannot catch up in its part of the time gives no lease.
func TestMemberThatStaysBehindIsPassedOver(t *testing.T) {
	w := newWsrep(t, func(c *shardrouter.Config) { c.AcquireTimeout = 3 * time.Second })
	tests := []struct{ name, causalTimeout string }{
		{"silent", "PT30S"},    // the attempt's time ends the wait
		{"refusing", "PT0.1S"}, // the member gives up with an error of its own
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := "SET GLOBAL wsrep_provider_options = 'repl.causal_read_timeout=" + tt.causalTimeout + "'"
			if _, err := w.root[1].ExecContext(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			w.drain(t, "server_1")
			defer w.undrain(t, "server_1")
			release := w.hold(t, 1)
			defer release()
			w.write(t, 0)
			l, err := w.Lease(t.Context(), on("server_1"), "")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Release()
			if got := amount(t, l.Conn()); l.Shard() != "server_3" || got != w.last {
				t.Errorf("served by %s, reads %d, want server_3 and %d", l.Shard(), got, w.last)
			}
			if _, err := w.Acquire(t.Context(), "server_2"); !isUnavailable(err, shardrouter.ErrUnavailable) || strings.Contains(err.Error(), "misconfigured") {
				t.Errorf("server_2 by name: %v, want it unreachable", err)
			}
		})
	}
}

// Servers without SET STATEMENT get a session that reads causally, which
// nobody after this lease finds.
func TestCausalSession(t *testing.T) {
	w := newWsrep(t)
	l, err := w.Acquire(t.Context(), "server_2")
	if err != nil {
		t.Fatal(err)
	}
	release := w.hold(t, 1)
	w.write(t, 0)
	defer soon(release)()
	if err := l.CausalSession(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := amount(t, l.Conn()); got != w.last {
		t.Errorf("read %d, want %d", got, w.last)
	}
	l.Release()
	if n := w.Stats()[1].Discarded; n != 1 {
		t.Errorf("%d connections discarded, want that one", n)
	}
}

// Hundreds of players write on server_1 and are served by server_2 at once,
// which is busy applying the large transactions of others. Beside each, a bare
// connection reads as one would without waiting.
func TestPlayersNeverMissTheirWrite(t *testing.T) {
	const players = 300
	w := newWsrep(t)
	w.drain(t, "server_1")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	load := lab.Open(t, w.dsns[0])
	lab.Exec(t, w.dsns[0], "CREATE TABLE load_rows (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_, _ = load.ExecContext(ctx, "INSERT INTO load_rows (v) SELECT seq FROM seq_1_to_3000")
		}
	}()
	defer func() { cancel(); <-done }()
	bare := 0
	for range players {
		w.write(t, 0)
		if amount(t, w.dbs[1]) != w.last {
			bare++
		}
		l, err := w.Lease(t.Context(), on("server_1"), "")
		if err != nil {
			t.Fatal(err)
		}
		if got := amount(t, l.Conn()); got != w.last {
			t.Errorf("a player who wrote %d reads %d on %s", w.last, got, l.Shard())
		}
		l.Release()
	}
	t.Logf("without waiting, %d of %d reads missed the write", bare, players)
}
