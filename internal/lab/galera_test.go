package lab_test

import (
	"slices"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/lab"
)

// rejoin bounds what a cluster needs to go on after a fault.
const rejoin = 30 * time.Second

func TestGaleraNodesComeBackWithAllRows(t *testing.T) {
	began := time.Now()
	nodes := lab.Galera(t, 3)
	t.Logf("three nodes after %v", time.Since(began).Round(time.Millisecond))
	lab.Exec(t, nodes[0].DSN(), "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
	awaitRows(t, nodes, 1)

	for i, end := range []func(*lab.MariaDBServer){
		(*lab.MariaDBServer).Kill,
		(*lab.MariaDBServer).Stop,
	} {
		end(nodes[i])
		began = time.Now()
		awaitWrite(t, nodes[2], i+2)
		t.Logf("writable without node %d after %v", i, time.Since(began).Round(time.Millisecond))
		began = time.Now()
		nodes[i].Start()
		t.Logf("node %d back after %v", i, time.Since(began).Round(time.Millisecond))
		awaitRows(t, nodes, i+2)
	}
}

func TestGaleraStartsAgainAfterAllNodesDied(t *testing.T) {
	nodes := lab.Galera(t, 2)
	lab.Exec(t, nodes[1].DSN(), "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
	awaitRows(t, nodes, 1)
	nodes[0].Kill()
	nodes[1].Kill()
	nodes[1].Start()
	nodes[0].Start()
	lab.Exec(t, nodes[0].DSN(), "INSERT INTO t VALUES (2)")
	awaitRows(t, nodes, 2)
}

func TestGaleraGoesOnWithoutAFrozenNode(t *testing.T) {
	nodes := lab.Galera(t, 3)
	lab.Exec(t, nodes[0].DSN(), "CREATE TABLE t (id INT PRIMARY KEY)")
	awaitRows(t, nodes, 0)
	nodes[2].Freeze()
	awaitWrite(t, nodes[0], 1)
	nodes[2].Thaw()
	awaitRows(t, nodes, 1)
}

func awaitWrite(t *testing.T, node *lab.MariaDBServer, id int) {
	t.Helper()
	db := lab.Open(t, node.DSN()+"?readTimeout=2s")
	lab.Eventually(t, rejoin, "the rest of the cluster takes writes", func() bool {
		_, err := db.Exec("REPLACE INTO t VALUES (?)", id)
		return err == nil
	})
}

func awaitRows(t *testing.T, nodes []*lab.MariaDBServer, want int) {
	t.Helper()
	lab.Eventually(t, rejoin, "every node has all rows", func() bool {
		return !slices.ContainsFunc(nodes, func(n *lab.MariaDBServer) bool {
			got, err := rows(t, n.DSN())
			return err != nil || got != want
		})
	})
}
