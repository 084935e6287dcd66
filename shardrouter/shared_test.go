package shardrouter_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/shardhop/shardhop/shardrouter"
)

// Whatever a statement leaves on a connection, by text or prepared, nobody else
// gets that connection.
func TestEveryKindOfResidueEndsItsConnection(t *testing.T) {
	resetTable(t, "(n INT)")
	for _, stmt := range []string{
		"BEGIN", "START TRANSACTION", "SET @gold = 7", "SET sql_mode = 'ANSI_QUOTES'", "SET autocommit = 0", "DO GET_LOCK('hero', 0)",
		"SELECT GET_LOCK('hero', 0)", "LOCK TABLES tx READ", "CREATE TEMPORARY TABLE mine (n INT)", "USE information_schema",
		"PREPARE p FROM 'SELECT 1'", "HANDLER tx OPEN", "SET ROLE NONE", "XA START 'x'", "SELECT 7 INTO @gold",
	} {
		for _, prepared := range []bool{false, true} {
			f := newFleet(t, 1, func(c *shardrouter.Config) { c.Shards[0].MaxConns = 1 })
			l := f.lease(t, "server_1")
			if !prepared {
				if err := exec(t.Context(), l.Conn(), stmt); err != nil {
					t.Errorf("%s: %v", stmt, err)
				}
			} else if ps, err := l.Conn().PrepareContext(t.Context(), stmt); err == nil { // some kinds cannot be prepared
				_, _ = ps.ExecContext(t.Context())
				_ = ps.Close() //nolint:sqlclosecheck // before the lease ends
			}
			l.Release()
			if n := f.Stats()[0].Discarded; n != 1 {
				t.Errorf("%s, prepared: %v: %d connections discarded, want 1", stmt, prepared, n)
			}
		}
	}
}

// Goroutines that share one connection get their own rows or a typed error.
func TestSharedConnection(t *testing.T) {
	f := newFleet(t, 1)
	l := f.lease(t, "server_1")
	defer l.Release()
	var all sync.WaitGroup
	for id := range 5 {
		all.Go(func() {
			for range 20 {
				rows, err := l.Conn().QueryContext(t.Context(), fmt.Sprintf("SELECT %d FROM seq_1_to_50", id))
				if errors.Is(err, shardrouter.ErrRowsOpen) {
					continue
				}
				if err != nil {
					t.Errorf("got %v", err)
					return
				}
				n := 0
				for ; rows.Next(); n++ {
					var got int
					if err := rows.Scan(&got); err != nil || got != id {
						t.Errorf("goroutine %d got %d (%v)", id, got, err)
					}
				}
				if err := errors.Join(rows.Err(), rows.Close()); err != nil || n != 50 { //nolint:sqlclosecheck // before the next query
					t.Errorf("%d rows, %v", n, err)
				}
			}
		})
	}
	all.Wait()
	if err := l.Conn().PingContext(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
