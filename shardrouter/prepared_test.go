package shardrouter_test

import (
	"database/sql"
	"testing"

	"github.com/shardhop/shardhop/shardrouter"
)

// A statement that stays prepared is something left behind as well: a server takes
// so many of them from all connections, and no more.
func TestStatementsLeftPreparedEndWithTheirConnection(t *testing.T) {
	f := newFleet(t, 1, func(c *shardrouter.Config) { c.Shards[0].MaxConns = 1 })
	lend := func(leave bool) uint64 {
		l := f.lease(t, "server_1")
		defer l.Release()
		stmt, err := l.Conn().PrepareContext(t.Context(), "SELECT 1")
		if err != nil {
			t.Fatal(err)
		}
		defer stmt.Close()
		if leave {
			l.Release() // before the statement is closed
		}
		return l.Thread()
	}
	threads := []uint64{lend(true), lend(false), lend(false)}
	if threads[0] == threads[1] || threads[1] != threads[2] {
		t.Errorf("connections %v were lent, want the first once and the other twice", threads)
	}
	if n := f.Stats()[0].Discarded; n != 1 {
		t.Errorf("%d connections discarded, want 1", n)
	}
	l := f.lease(t, "server_1")
	defer l.Release()
	err := within(t.Context(), l, func(tx *sql.Tx) error {
		_, err := tx.PrepareContext(t.Context(), "SELECT 2") //nolint:sqlclosecheck // the transaction closes it
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	l.Release()
	if last := lend(false); last != threads[2] {
		t.Errorf("connection %d was lent, want %d: what a transaction prepared ends with it", last, threads[2])
	}
}
