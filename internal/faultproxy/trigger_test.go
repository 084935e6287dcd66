package faultproxy_test

import (
	"bytes"
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
)

func TestCutAfter(t *testing.T) {
	tests := []struct {
		when     faultproxy.When
		received string
		reason   string
	}{
		{faultproxy.BeforeForward, "hello", "the bytes never arrive"},
		{faultproxy.AfterForward, "helloCOMMIT", "they arrive, unanswered for the client"},
		{faultproxy.AfterReply, "helloCOMMIT", "they were answered, and the answer is withheld"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			e := newEcho(t)
			p := faultproxy.New(t, e.addr())
			other, conn := linked(t, p), dial(t, p)
			fired := p.CutAfter([]byte("COMMIT"), tt.when)
			send(t, conn, "COMMIT")
			awaitFired(t, fired)
			expectEnd(t, conn)
			send(t, other, "COMMIT")
			expect(t, other, "COMMIT") // a trigger acts once
			want := tt.received + "COMMIT"
			lab.Eventually(t, soon, "the upstream got "+want, func() bool { return e.received() == want })
		})
	}
}

func TestCutAfterMatchInPieces(t *testing.T) {
	e := newEcho(t)
	p := faultproxy.New(t, e.addr())
	conn := linked(t, p)
	fired := p.CutAfter([]byte("COMMIT"), faultproxy.BeforeForward)
	send(t, conn, "COM")
	expect(t, conn, "COM")
	send(t, conn, "MIT")
	awaitFired(t, fired)
	expectEnd(t, conn)
	if got := e.received(); got != "helloCOM" {
		t.Errorf("the upstream got %q", got)
	}
}

func TestSwitchAfter(t *testing.T) {
	tests := []struct {
		when     faultproxy.When
		mode     faultproxy.Mode
		received string
		late     string // what the client reads when the mode is Pass again
		reason   string
	}{
		{faultproxy.BeforeForward, faultproxy.Freeze, "hello", "COMMIT", "the bytes wait"},
		{faultproxy.AfterForward, faultproxy.Freeze, "helloCOMMIT", "COMMIT", "the answer waits"},
		{faultproxy.AfterReply, faultproxy.Freeze, "helloCOMMIT", "COMMIT", "the answer waits"},
		{faultproxy.BeforeForward, faultproxy.Drop, "hello", "", "the bytes are lost"},
		{faultproxy.AfterForward, faultproxy.Drop, "helloCOMMIT", "", "the answer is lost"},
		{faultproxy.AfterReply, faultproxy.Drop, "helloCOMMIT", "", "the answer is lost"},
	}
	for _, tt := range tests {
		t.Run(tt.mode.String()+": "+tt.reason, func(t *testing.T) {
			e := newEcho(t)
			p := faultproxy.New(t, e.addr())
			conn := linked(t, p)
			fired := p.SwitchAfter([]byte("COMMIT"), tt.when, tt.mode)
			send(t, conn, "COMMIT")
			awaitFired(t, fired)
			expectSilence(t, conn)
			if got := e.received(); got != tt.received {
				t.Errorf("the upstream got %q, want %q", got, tt.received)
			}
			p.SetMode(faultproxy.Pass)
			if tt.late == "" {
				expectSilence(t, conn)
			} else {
				expect(t, conn, tt.late)
			}
		})
	}
}

// A server that got COMMIT carries it out, whatever becomes of the connection.
func TestCutAtCommitOfMariaDB(t *testing.T) {
	ctx := context.Background()
	db := lab.MariaDB(t)
	lab.Exec(t, db.DSN(), "CREATE TABLE t (id INT PRIMARY KEY)")
	direct := lab.Open(t, db.DSN())
	direct.SetMaxOpenConns(1)
	tests := []struct {
		when      faultproxy.When
		committed int
	}{
		{faultproxy.BeforeForward, 0},
		{faultproxy.AfterForward, 1},
		{faultproxy.AfterReply, 1},
	}
	for _, tt := range tests {
		p := faultproxy.New(t, db.Addr())
		pool := lab.Open(t, db.DSNAt(p.Addr()))
		lab.Exec(t, db.DSN(), "DELETE FROM t")
		tx, err := pool.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO t VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		fired := p.CutAfter([]byte("COMMIT"), tt.when)
		if err := tx.Commit(); err == nil {
			t.Errorf("%v: the client was told of the commit", tt.when)
		}
		awaitFired(t, fired)
		lab.Eventually(t, soon, "the row is as it should be, and no transaction is left", func() bool {
			var rows, running int
			err := direct.QueryRow("SELECT (SELECT COUNT(*) FROM t), (SELECT COUNT(*) FROM information_schema.processlist)").Scan(&rows, &running)
			return err == nil && rows == tt.committed && running == 1
		})
	}
}

func TestHistoryFindsAMatchInAnyPieces(t *testing.T) {
	letter := rapid.SampledFrom([]byte("ab"))
	rapid.Check(t, func(t *rapid.T) {
		match := rapid.SliceOfN(letter, 1, 4).Draw(t, "match")
		chunks := rapid.SliceOf(rapid.SliceOfN(letter, 1, 5)).Draw(t, "chunks")
		want := -1
		for i := range chunks {
			if bytes.Contains(bytes.Join(chunks[:i+1], nil), match) {
				want = i
				break
			}
		}
		if got := faultproxy.FirstMatch(match, chunks); got != want {
			t.Fatalf("first match in chunk %d, want %d", got, want)
		}
	})
}
