package shardrouter_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// cluster is one shard whose nodes are the members of a Galera cluster, and a
// router of it.
type cluster struct {
	*fleet
	nodes []*lab.MariaDBServer
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{fleet: &fleet{}, nodes: lab.Galera(t, 3)}
	var addrs []string
	for _, n := range c.nodes {
		addrs = append(addrs, n.Addr())
	}
	lab.Exec(t, c.nodes[0].DSN(), "CREATE TABLE tx (n INT PRIMARY KEY, runs INT)")
	c.Router = start(t, shardrouter.Config{
		HealthInterval: 200 * time.Millisecond, Redis: lab.Redis(t).Client(),
		Shards: []shardrouter.Shard{{Name: "server_1", DSN: shardrouter.DSN(c.nodes[0].DSNAt(strings.Join(addrs, ","))), MaxConns: 25}},
	})
	lab.Eventually(t, 20*time.Second, "the shard has a writer", func() bool { return c.Stats()[0].Writer != "" })
	return c
}

// writer is the member to which the shard's writes go.
func (c *cluster) writer(t *testing.T) *lab.MariaDBServer {
	t.Helper()
	for _, n := range c.nodes {
		if n.Addr() == c.Stats()[0].Writer {
			return n
		}
	}
	t.Fatalf("the writer is %q", c.Stats()[0].Writer)
	return nil
}

// during has twenty writers write while fn runs and until each of them got
// through once more, and returns how many writes were acknowledged.
func (c *cluster) during(t *testing.T, base int, fn func()) (acknowledged int) {
	t.Helper()
	var writers sync.WaitGroup
	var mu sync.Mutex
	stop := make(chan struct{})
	for w := range 20 {
		writers.Go(func() {
			for n := base + w*10_000; ; n++ {
				err := c.write(t.Context(), n)
				if err != nil {
					t.Errorf("a write failed: %v", err)
					return
				}
				mu.Lock()
				acknowledged++
				mu.Unlock()
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		})
	}
	fn()
	close(stop)
	writers.Wait()
	return acknowledged
}

func (c *cluster) write(ctx context.Context, n int) error {
	src := &source{r: c.Router}
	defer src.end()
	return shardrouter.Tx(ctx, src, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO tx VALUES (%d, 1) ON DUPLICATE KEY UPDATE runs = runs + 1", n))
		return err
	})
}

// A shard whose nodes are the members of one Galera cluster outlives a drain, a
// crash and a freeze of its writer, and hands over without a hold where a member
// is ready.
func TestGaleraShard(t *testing.T) {
	c := newCluster(t)
	total := 0
	for i, f := range []struct {
		name, reason string
		strike       func(writer *lab.MariaDBServer)
		restore      func(writer *lab.MariaDBServer)
	}{
		{"drain", "another member takes over at once", func(n *lab.MariaDBServer) {
			if err := c.Health().DrainNode(t.Context(), "server_1", n.Addr(), "new disks", 0); err != nil {
				t.Fatal(err)
			}
		}, func(n *lab.MariaDBServer) {
			if err := c.Health().UndrainNode(t.Context(), "server_1", n.Addr()); err != nil {
				t.Fatal(err)
			}
		}},
		{"freeze", "the others evict it, and go on", (*lab.MariaDBServer).Freeze, (*lab.MariaDBServer).Thaw},
		{"kill", "the others have everything that was committed", (*lab.MariaDBServer).Kill, nil},
	} {
		before := c.writer(t)
		total += c.during(t, i*1_000_000, func() {
			<-time.After(500 * time.Millisecond)
			f.strike(before)
			c.awaitOther(t, before, f.name)
			<-time.After(500 * time.Millisecond)
		})
		if f.restore != nil {
			f.restore(before)
			c.awaitWhole(t)
		}
		t.Logf("%s: %d writes so far, on %s then", f.name, total, c.Stats()[0].Writer)
		var rows, runs int
		row := lab.Open(t, c.writer(t).DSN()).QueryRowContext(t.Context(), "SELECT COUNT(*), COALESCE(SUM(runs), 0) FROM tx")
		if err := row.Scan(&rows, &runs); err != nil || rows != total || runs != total {
			t.Errorf("%s: %d rows of %d writes, run %d times (%v): %s", f.name, rows, total, runs, err, f.reason)
		}
		if s := c.Stats()[0]; s.Alarm != "" {
			t.Errorf("%s: alarm %q", f.name, s.Alarm)
		}
	}
}

// awaitOther waits until the writes go to another member than before.
func (c *cluster) awaitOther(t *testing.T, before *lab.MariaDBServer, name string) {
	t.Helper()
	lab.Eventually(t, 40*time.Second, name+": another member takes the writes", func() bool {
		w := c.Stats()[0].Writer
		return w != "" && w != before.Addr()
	})
}

// awaitWhole waits until every member is back, since two are a majority of three
// and one is none.
func (c *cluster) awaitWhole(t *testing.T) {
	t.Helper()
	lab.Eventually(t, 60*time.Second, "every member is back", func() bool {
		for _, n := range c.nodes {
			var name, size, ready string
			db := lab.Open(t, n.RootDSN())
			if db.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'").Scan(&name, &size) != nil ||
				db.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'wsrep_ready'").Scan(&name, &ready) != nil ||
				size != "3" || ready != "ON" {
				return false
			}
		}
		return true
	})
}
