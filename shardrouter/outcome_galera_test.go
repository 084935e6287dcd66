package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// galeraFleet is a router over three members of one Galera cluster, each a shard behind a proxy.
func galeraFleet(t *testing.T) ([]*lab.MariaDBServer, *fleet) {
	t.Helper()
	nodes := lab.Galera(t, 3)
	f := &fleet{proxies: map[string]*faultproxy.Proxy{}}
	var shards []shardrouter.Shard
	for i, n := range nodes {
		name := fmt.Sprintf("server_%d", i+1)
		f.proxies[name] = faultproxy.New(t, n.Addr())
		shards = append(shards, shardrouter.Shard{Name: name, DSN: shardrouter.DSN(n.DSNAt(f.proxies[name].Addr()))})
	}
	lab.Exec(t, nodes[0].DSN(), "CREATE TABLE tx (n INT)")
	f.Router = start(t, shardrouter.Config{Shards: shards})
	return nodes, f
}

func rowsAt(t *testing.T, node *lab.MariaDBServer) int {
	t.Helper()
	var n int
	if err := lab.Open(t, node.DSN()+"?wsrep_sync_wait=1").QueryRowContext(t.Context(), "SELECT COUNT(*) FROM tx").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTxOnAGaleraCluster(t *testing.T) {
	nodes, f := galeraFleet(t)
	acknowledged := 0
	check := func(name string, err error) {
		t.Helper()
		if err == nil {
			acknowledged++
		}
		if n := rowsAt(t, nodes[2]); err != nil || n != acknowledged {
			t.Errorf("%s: got %v, and %d rows for %d acknowledged transactions", name, err, n, acknowledged)
		}
	}

	// One key at two members at once: neither waits, and one is refused at its
	// COMMIT, runs again, and finds the other's answer.
	var inside, wg sync.WaitGroup
	inside.Add(2)
	answers := make([]string, 2)
	for i := range answers {
		wg.Go(func() {
			s := &session{f: f, shard: f.Shards()[i]}
			defer s.end()
			first := true
			answer, err := shardrouter.TxAnswer(t.Context(), s, dig{key: "k"}.opts(), func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
				if first {
					first = false
					inside.Done()
					inside.Wait()
				}
				return []byte(s.shard), insertOne(ctx, tx)
			})
			if err != nil {
				t.Errorf("one key at two members: %v", err)
			}
			answers[i] = string(answer.Body)
		})
	}
	wg.Wait()
	if answers[0] != answers[1] || answers[0] == "" {
		t.Errorf("one key at two members: answers %q, want the same", answers)
	}
	check("one key at two members", nil)

	// The connection goes at COMMIT, and so does the way to the member.
	for _, when := range []faultproxy.When{faultproxy.BeforeForward, faultproxy.AfterForward, faultproxy.AfterReply} {
		s := &session{f: f, shard: "server_1"}
		cut := f.proxies["server_1"].SwitchAfter([]byte("COMMIT"), when, faultproxy.Cut)
		err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, insertOne)
		s.end()
		<-cut
		check(fmt.Sprintf("cut off, %v", when), err)
		if s.shard == "server_1" {
			t.Errorf("cut off, %v: served by server_1", when)
		}
		f.set(faultproxy.Pass, "server_1")
		f.wait(t, "up", "server_1")
	}

	// Two of three members freeze at COMMIT: nothing can tell.
	s := &session{f: f, shard: "server_1"}
	err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
		err := insertOne(ctx, tx)
		nodes[1].Freeze()
		nodes[2].Freeze()
		return err
	})
	s.end()
	nodes[1].Thaw()
	nodes[2].Thaw()
	f.wait(t, "up", f.Shards()...)
	n := rowsAt(t, nodes[2])
	if unknown := errors.Is(err, shardrouter.ErrOutcomeUnknown); err != nil && !unknown || err == nil && n != acknowledged+1 || n < acknowledged || n > acknowledged+1 {
		t.Errorf("majority frozen: got %v, and %d rows after %d acknowledged transactions", err, n, acknowledged)
	}
	t.Logf("majority frozen: %v; %d rows, %d acknowledged before", err, n, acknowledged)

	// The member dies with the COMMIT.
	acknowledged = n
	s = &session{f: f, shard: "server_1"}
	cut := f.proxies["server_1"].CutAfter([]byte("COMMIT"), faultproxy.AfterForward)
	dead := make(chan struct{})
	go func() { defer close(dead); <-cut; nodes[0].Kill() }()
	err = shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, insertOne)
	s.end()
	<-dead
	check("killed", err)
}
