package embedded_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/shardhop/shardhop/example-game/internal/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newCluster(t *testing.T, cfg embedded.Config) *embedded.Cluster {
	t.Helper()
	c, err := embedded.NewCluster(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func open(t *testing.T, c *embedded.Cluster, node string) *sql.DB {
	t.Helper()
	return openWith(t, c, node, func(*mysql.Config) {})
}

func openWith(t *testing.T, c *embedded.Cluster, node string, change func(*mysql.Config)) *sql.DB {
	t.Helper()
	cfg, err := mysql.ParseDSN(c.DSN(node))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Logger = &mysql.NopLogger{}
	change(cfg)
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(20)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(context.Background(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// withPlayer returns a cluster and a pool per node, with one row in players.
func withPlayer(t *testing.T, cfg embedded.Config) (*embedded.Cluster, []*sql.DB) {
	t.Helper()
	c := newCluster(t, cfg)
	var dbs []*sql.DB
	for _, n := range c.Nodes() {
		dbs = append(dbs, open(t, c, n))
	}
	exec(t, dbs[0], "CREATE TABLE players (name VARCHAR(32) PRIMARY KEY, gold BIGINT NOT NULL)")
	exec(t, dbs[1], "INSERT INTO players VALUES ('ann', 0)")
	return c, dbs
}

func gold(t *testing.T, db *sql.DB) int {
	t.Helper()
	var n int
	if err := db.QueryRowContext(context.Background(), "SELECT gold FROM players WHERE name = ?", "ann").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func dig(db *sql.DB, inTx bool) error {
	const update = "UPDATE players SET gold = gold + 1 WHERE name = ?"
	if !inTx {
		_, err := db.ExecContext(context.Background(), update, "ann")
		return err
	}
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(context.Background(), update, "ann"); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func TestParallelUpdatesLoseNothing(t *testing.T) {
	c, dbs := withPlayer(t, embedded.Config{GateWait: time.Minute})
	dbs = append(dbs, // two that speak to the server in other commands
		openWith(t, c, "server_1", func(cfg *mysql.Config) { cfg.InterpolateParams = false }),
		openWith(t, c, "server_2", func(cfg *mysql.Config) { cfg.MultiStatements = true }))
	var wg sync.WaitGroup
	for w := range 20 {
		wg.Go(func() {
			for i := range 50 {
				if err := dig(dbs[w%len(dbs)], i%2 == 0); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for i, db := range dbs {
		if n := gold(t, db); n != 1000 {
			t.Errorf("node %d: gold = %d, want 1000", i, n)
		}
	}
}

func TestFailedStatementLeavesNothingBehind(t *testing.T) {
	_, dbs := withPlayer(t, embedded.Config{})
	ctx := context.Background()
	conn, err := dbs[0].Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, "INSERT INTO players VALUES ('ann', 7)"); err == nil {
		t.Fatal("a duplicate key was accepted")
	}
	if err := dig(dbs[1], false); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(ctx, "UPDATE players SET gold = gold + 1 WHERE name = 'ann'"); err != nil {
		t.Fatal(err)
	}
	if n := gold(t, dbs[2]); n != 2 {
		t.Errorf("gold = %d, want 2: the failed connection put its stale copy back", n)
	}
}

func TestProbesPassAnOpenTransaction(t *testing.T) {
	_, dbs := withPlayer(t, embedded.Config{})
	tx, err := dbs[0].BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(context.Background(), "UPDATE players SET gold = 9"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	var one, readOnly int
	if err := dbs[1].QueryRowContext(ctx, "SELECT 1, @@global.read_only").Scan(&one, &readOnly); err != nil {
		t.Errorf("a probe waited for the transaction: %v", err)
	}
}

func TestGateWaitEndsWith1205(t *testing.T) {
	_, dbs := withPlayer(t, embedded.Config{GateWait: 100 * time.Millisecond})
	tx, err := dbs[0].BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	var my *mysql.MySQLError
	if err := dig(dbs[1], false); !errors.As(err, &my) || my.Number != 1205 {
		t.Errorf("err = %v, want error 1205", err)
	}
}

func TestSilentTransactionLosesItsConnection(t *testing.T) {
	_, dbs := withPlayer(t, embedded.Config{IdleWait: 100 * time.Millisecond})
	tx, err := dbs[0].BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(context.Background(), "UPDATE players SET gold = 9"); err != nil {
		t.Fatal(err)
	}
	if err := dig(dbs[1], false); err != nil {
		t.Fatalf("the gate was not freed: %v", err)
	}
	if err := tx.Commit(); err == nil {
		t.Error("the silent transaction was committed")
	}
	if n := gold(t, dbs[2]); n != 1 {
		t.Errorf("gold = %d, want 1", n)
	}
}

func TestStopAndStart(t *testing.T) {
	c, dbs := withPlayer(t, embedded.Config{})
	dsn := c.DSN("server_1")
	do(t, c, "server_1", "stop")
	if err := dig(dbs[0], false); err == nil {
		t.Error("a stopped node answered")
	}
	if err := dig(dbs[1], false); err != nil {
		t.Errorf("another node failed: %v", err)
	}
	if got := c.State("server_1"); got != embedded.Stopped {
		t.Errorf("state = %s", got)
	}
	do(t, c, "server_1", "stop") // again: nothing
	do(t, c, "server_1", "start")
	do(t, c, "server_1", "start")
	if c.DSN("server_1") != dsn {
		t.Error("the node came back on another port")
	}
	if n := gold(t, dbs[0]); n != 1 {
		t.Errorf("gold = %d, want 1", n)
	}
}

func TestFreezeAndThaw(t *testing.T) {
	c, dbs := withPlayer(t, embedded.Config{})
	tx, err := dbs[0].BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(context.Background(), "UPDATE players SET gold = 9"); err != nil {
		t.Fatal(err)
	}
	do(t, c, "server_1", "freeze")
	if err := dig(dbs[1], false); err != nil {
		t.Fatalf("the frozen transaction kept the gate: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if _, err := tx.ExecContext(ctx, "SELECT 1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a frozen connection gave %v, want silence", err)
	}
	silent(t, c)
	do(t, c, "server_1", "thaw")
	if n := gold(t, dbs[0]); n != 1 {
		t.Errorf("gold = %d, want 1: the frozen transaction was committed", n)
	}
}

// silent checks that server_1 takes a new connection and says nothing on it,
// and that a thaw closes it.
func silent(t *testing.T, c *embedded.Cluster) {
	t.Helper()
	cfg, err := mysql.ParseDSN(c.DSN("server_1"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", cfg.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	var timeout net.Error
	if _, err := conn.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("a new connection to a frozen node gave %v, want silence", err)
	}
}

func do(t *testing.T, c *embedded.Cluster, node, verb string) {
	t.Helper()
	if err := c.Do(node, verb); err != nil {
		t.Fatalf("%s %s: %v", verb, node, err)
	}
}

func TestVerbsThatMeanNothing(t *testing.T) {
	c := newCluster(t, embedded.Config{Nodes: []string{"a", "b"}})
	do(t, c, "a", "stop")
	do(t, c, "b", "freeze")
	for _, tc := range []struct {
		node, verb string
		want       error
		reason     string
	}{
		{"x", "stop", embedded.ErrUnknownNode, "no such node"},
		{"b", "explode", embedded.ErrUnknownVerb, "no such verb"},
		{"a", "freeze", embedded.ErrWrongState, "a stopped node has nothing to freeze"},
		{"a", "thaw", embedded.ErrWrongState, "a stopped node is not frozen"},
		{"b", "start", embedded.ErrWrongState, "a frozen node runs"},
	} {
		if err := c.Do(tc.node, tc.verb); !errors.Is(err, tc.want) {
			t.Errorf("%s %s: %v, want %v: %s", tc.verb, tc.node, err, tc.want, tc.reason)
		}
	}
	if c.DSN("x") != "" || c.State("x") != "" {
		t.Error("an unknown node has a DSN or a state")
	}
}

func TestCloseTwice(t *testing.T) {
	c, _ := withPlayer(t, embedded.Config{})
	do(t, c, "server_2", "freeze")
	silentConn := open(t, c, "server_2")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_ = silentConn.PingContext(ctx)
	for range 2 {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRedisKeysExpire(t *testing.T) {
	r, err := embedded.NewRedis()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = r.Close() })
	opts, err := redis.ParseURL(r.URL())
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(opts)
	t.Cleanup(func() { _ = rdb.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := rdb.Set(ctx, "k", "v", 300*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	for rdb.Exists(ctx, "k").Val() != 0 {
		if ctx.Err() != nil {
			t.Fatal("the key did not expire")
		}
	}
}
