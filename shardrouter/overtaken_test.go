package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// holdBack has the primary answer no write before the returned function is
// called.
func (f *instances) holdBack(t *testing.T) (release func()) {
	t.Helper()
	conn, err := lab.Open(t, f.pair.Node(0).RootDSN()).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "FLUSH TABLES WITH READ LOCK"); err != nil {
		t.Fatal(err)
	}
	return func() {
		defer func() { _ = conn.Close() }()
		if _, err := conn.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
			t.Error(err)
		}
	}
}

// awaitHeldBack waits until a write has reached the primary.
func (f *instances) awaitHeldBack(t *testing.T) {
	t.Helper()
	root := lab.Open(t, f.pair.Node(0).RootDSN())
	lab.Eventually(t, 20*time.Second, "a write waits", func() bool {
		var n int
		row := root.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for backup lock'")
		return row.Scan(&n) == nil && n > 0
	})
}

// succeed records the standby as the writer although the primary takes writes.
func (f *instances) succeed(t *testing.T) {
	t.Helper()
	r, to := f.routers[0], f.pair.Node(1).Addr()
	record, _ := r.Health().Writer("server_1")
	next := record
	next.Addr, next.Server, next.Life, next.Epoch = to, "", "", record.Epoch+1
	if _, err := r.Health().MoveWriter(t.Context(), "server_1", record, next); err != nil {
		t.Fatal(err)
	}
	f.writesTo(t, r, to)
}

// A COMMIT that a node confirms after another became the writer is not believed:
// it is settled on the new writer, which does not have it, and the transaction
// runs again there.
func TestCommitOnOvertakenNode(t *testing.T) {
	f := newInstances(t, 1)
	lab.Exec(t, f.pair.Node(0).DSN(), shardrouter.OutcomeDDL)
	f.pair.Await(1, 0)
	f.pair.Promote(1)
	inserted, locked := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	runs := 0
	go func() {
		src := &source{r: f.routers[0]}
		defer src.end()
		ended <- shardrouter.Tx(t.Context(), src, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO writes VALUES (1, @@port)")
			if runs++; runs == 1 {
				close(inserted)
				<-locked
			}
			return err
		})
	}()
	<-inserted
	release := f.holdBack(t)
	close(locked)
	f.awaitHeldBack(t)
	f.succeed(t)
	release()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if runs != 2 || f.count(t, 1) != 1 {
		t.Errorf("the body ran %d times, and the new writer has %d rows; want 2 and 1", runs, f.count(t, 1))
	}
}

// A write outside of a transaction that a node confirms after another became the
// writer is of unknown outcome, and it gets no more of them.
func TestWriteOnOvertakenNode(t *testing.T) {
	f := newInstances(t, 1)
	f.pair.Promote(1)
	lease, err := f.routers[0].Lease(t.Context(), on("server_1"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	release := f.holdBack(t)
	ended := make(chan error, 1)
	go func() {
		_, err := lease.Conn().ExecContext(t.Context(), "INSERT INTO writes VALUES (1, @@port)")
		ended <- err
	}()
	f.awaitHeldBack(t)
	f.succeed(t)
	release()
	if err := <-ended; !errors.Is(err, shardrouter.ErrOutcomeUnknown) {
		t.Errorf("a write that was confirmed: %v; want an unknown outcome", err)
	}
	_, err = lease.Conn().ExecContext(t.Context(), "INSERT INTO writes VALUES (2, @@port)")
	if shardrouter.ProgressOf(err) != shardrouter.NotSent {
		t.Errorf("the next write: %v; want not sent", err)
	}
	if _, err = lease.Conn().BeginTx(t.Context(), nil); shardrouter.ProgressOf(err) != shardrouter.NotSent {
		t.Errorf("the next transaction: %v; want not sent", err)
	}
	if err := lease.Conn().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM writes").Scan(new(int)); err != nil {
		t.Errorf("a read, which may come to its end: %v", err)
	}
	if n := f.count(t, 0); n != 1 {
		t.Errorf("the node before has %d rows, want the one that was under way", n)
	}
}
