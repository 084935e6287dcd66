package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/internal/scriptserver"
	"github.com/shardhop/shardhop/shardrouter"
)

// smallPackets has the server take statements of no more than a mebibyte, on
// connections that are made from now on.
func smallPackets(t *testing.T) {
	t.Helper()
	var before string
	root := lab.Open(t, server.RootDSN())
	if err := root.QueryRowContext(t.Context(), "SELECT @@global.max_allowed_packet").Scan(&before); err != nil {
		t.Fatal(err)
	}
	lab.Exec(t, server.RootDSN(), "SET GLOBAL max_allowed_packet = 1048576")
	t.Cleanup(func() { lab.Exec(t, server.RootDSN(), "SET GLOBAL max_allowed_packet = "+before) })
}

// with is a change of the configuration that adds parameters to the DSN.
func with(params string) func(*shardrouter.Config) {
	return func(c *shardrouter.Config) { c.Shards[0].DSN += shardrouter.DSN("?" + params) }
}

// To a statement that is too large the server answers, and closes the connection
// under what is still being sent, so that it looks like a server that died. It is
// refused before, by its size: the transaction's body runs once, and the connection
// is as good as before.
func TestStatementLargerThanTheServerTakes(t *testing.T) {
	const mebibyte = 1 << 20
	text := func(n int) string { return "INSERT INTO tx VALUES ('" + strings.Repeat("x", n) + "')" }
	tests := []struct {
		name, reason string
		params       string // of the DSN
		stmt         string
		args         []any
		want         error // nil: it runs
	}{
		{"as large as may be", "the byte of the command counts", "", text(mebibyte - len(text(0)) - 6), nil, nil},
		{"as large as may be, compressed", "and the header of a compressed packet", "compress=true", text(mebibyte - len(text(0)) - 6), nil, nil},
		{"by a little", "the answer arrives", "", text(mebibyte), nil, shardrouter.ErrTooLarge},
		{"by much", "the connection is reset in mid-write", "", text(20 * mebibyte), nil, shardrouter.ErrTooLarge},
		{"compressed", "the answer is not understood", "compress=true", text(20 * mebibyte), nil, shardrouter.ErrTooLarge},
		{"several parameters", "they are sent one by one", "", "INSERT INTO tx VALUES (?), (?)", []any{text(mebibyte / 2), text(mebibyte / 2)}, nil},
		{"one parameter", "the server refuses it by itself", "", "INSERT INTO tx VALUES (?)", []any{text(mebibyte)}, shardrouter.ErrTooLarge},
		{"the DSN allows less", "it has the last word", "maxAllowedPacket=4096", text(5000), nil, shardrouter.ErrTooLarge},
		{"the DSN allows more", "the server does not", "maxAllowedPacket=33554432", text(20 * mebibyte), nil, shardrouter.ErrTooLarge},
		{"the DSN has the driver ask", "which it does for each connection", "maxAllowedPacket=0", text(20 * mebibyte), nil, shardrouter.ErrTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			smallPackets(t)
			s := newSession(t, "(b LONGBLOB)", 1, with(tt.params))
			before := threadOf(t, s)
			runs := 0
			err := shardrouter.Tx(t.Context(), s, withRow, func(ctx context.Context, tx *sql.Tx) error {
				runs++
				_, err := tx.ExecContext(ctx, tt.stmt, tt.args...)
				return err
			})
			if !errors.Is(err, tt.want) || runs != 1 {
				t.Errorf("got %.300v after %d runs, want %v after one: %s", err, runs, tt.want, tt.reason)
			}
			if tt.want != nil && (shardrouter.ProgressOf(err) != shardrouter.NotSent || shardrouter.VerdictOf(err) != shardrouter.VerdictStatement) {
				t.Errorf("the statement is %v, and the verdict %v", shardrouter.ProgressOf(err), shardrouter.VerdictOf(err))
			}
			if after := threadOf(t, s); after != before || s.lease.Lost() {
				t.Errorf("thread %d after %d, want the same connection: %s", after, before, tt.reason)
			}
		})
	}
}

// threadOf is the number of the session's connection on the server.
func threadOf(t *testing.T, s *session) (id int) {
	t.Helper()
	l, err := s.Lease(t.Context())
	if err == nil {
		err = l.Conn().QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A statement that is prepared is refused by its size as well.
func TestPreparedStatementLargerThanTheServerTakes(t *testing.T) {
	smallPackets(t)
	l := newFleet(t, 1).lease(t, "server_1")
	defer l.Release()
	_, err := l.Conn().PrepareContext(t.Context(), "SELECT '"+strings.Repeat("x", 20<<20)+"'") //nolint:sqlclosecheck // there is none
	if !errors.Is(err, shardrouter.ErrTooLarge) || shardrouter.ProgressOf(err) != shardrouter.NotSent {
		t.Errorf("got %.300v, want ErrTooLarge, not sent", err)
	}
	if err := l.Conn().PingContext(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A limit that was changed on the running server holds for the connections that are
// made afterwards, without one that is made to find out.
func TestLimitThatChanges(t *testing.T) {
	f := newFleet(t, 1)
	large := "DO '" + strings.Repeat("x", 2<<20) + "'"
	old := f.lease(t, "server_1")
	defer old.Release()
	smallPackets(t)
	fresh := f.lease(t, "server_1")
	defer fresh.Release()
	if err := exec(t.Context(), fresh.Conn(), large); !errors.Is(err, shardrouter.ErrTooLarge) {
		t.Errorf("a connection made after the change got %.300v, want ErrTooLarge", err)
	}
	if err := exec(t.Context(), old.Conn(), large); err != nil {
		t.Errorf("a connection made before the change got %.300v", err)
	}
}

// Something between may take less than the server does. If its refusal arrives, it
// is believed.
func TestRefusalBySizeThatArrives(t *testing.T) {
	s := scriptserver.New(t)
	s.Answer("INTO tx", scriptserver.Err(1153, "Got a packet bigger than 'max_allowed_packet' bytes"))
	src := &session{f: &fleet{Router: routerOf(t, s.DSN())}, shard: "server_1"}
	defer src.end()
	runs := 0
	err := shardrouter.Tx(t.Context(), src, withRow, func(ctx context.Context, tx *sql.Tx) error {
		runs++
		return insertOne(ctx, tx)
	})
	if !errors.Is(err, shardrouter.ErrTooLarge) || shardrouter.ProgressOf(err) != shardrouter.NotSent || runs != 1 {
		t.Errorf("got %v after %d runs, want ErrTooLarge, not sent, after one", err, runs)
	}
}
