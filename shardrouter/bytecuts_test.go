package shardrouter_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// byteCut is a statement that is cut ever later, on its way and in its answer.
type byteCut struct {
	name           string
	sent, answered int                  // so many bytes lie between two cuts in the clear
	rows           int                  // there are, if it was run
	whole          func(err error) bool // the answer came whole
	run            func(ctx context.Context, conn *sql.Conn, cut func()) error
}

// long fills more than one packet of the network, and compresses to little less.
var long = func() []byte {
	b := make([]byte, 75<<10)
	_, _ = rand.Read(b) // never fails
	return b
}()

func succeeded(err error) bool { return err == nil }

func refusedAsDuplicate(err error) bool {
	answer, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && answer.Number == 1062
}

var byteCuts = []byteCut{
	{"write", 7, 1, 1, succeeded, func(ctx context.Context, conn *sql.Conn, cut func()) error {
		cut()
		return exec(ctx, conn, "INSERT INTO cuts VALUES (1, '')")
	}},
	{"refused write", 7, 1, 0, refusedAsDuplicate, func(ctx context.Context, conn *sql.Conn, cut func()) error {
		cut()
		return exec(ctx, conn, "INSERT INTO cuts VALUES (7, '')")
	}},
	{"prepared write", 3, 4, 1, succeeded, func(ctx context.Context, conn *sql.Conn, cut func()) error {
		stmt, err := conn.PrepareContext(ctx, "INSERT INTO cuts VALUES (?, '')")
		if err != nil {
			return err
		}
		defer stmt.Close()
		cut()
		_, err = stmt.ExecContext(ctx, 1)
		return err
	}},
	{"read", 7, 1, 0, succeeded, func(ctx context.Context, conn *sql.Conn, cut func()) error {
		cut()
		return readAll(ctx, conn, "SELECT id FROM cuts")
	}},
	{"COMMIT", 1, 1, 1, succeeded, func(ctx context.Context, conn *sql.Conn, cut func()) error {
		tx, err := conn.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(ctx, "INSERT INTO cuts VALUES (1, '')"); err != nil {
			return err
		}
		cut()
		return tx.Commit()
	}},
	{"long write", 39989, 4, 1, succeeded, func(ctx context.Context, conn *sql.Conn, cut func()) error {
		cut()
		return exec(ctx, conn, "INSERT INTO cuts VALUES (1, '"+hex.EncodeToString(long)+"')")
	}},
	{"long read", 40, 19999, 0, succeeded, func(ctx context.Context, conn *sql.Conn, cut func()) error {
		cut()
		return readAll(ctx, conn, "SELECT SHA2(seq, 512), REPEAT('x', IF(seq = 1, 70000, 0)) FROM seq_1_to_800")
	}},
}

// What is said of a statement holds at whatever byte of it, or of its answer, the
// connection was cut, in the clear, encrypted and compressed.
func TestCutsAtEveryByte(t *testing.T) {
	cert, key := certificate(t)
	db := lab.MariaDB(t, lab.WithArgs("--ssl-cert="+cert, "--ssl-key="+key))
	lab.Exec(t, db.RootDSN(), "CREATE TABLE game.cuts (id INT PRIMARY KEY, t MEDIUMTEXT)", "INSERT INTO game.cuts VALUES (7, '')")
	direct := lab.Open(t, db.DSN())
	for _, protocol := range []struct {
		params string
		stride int // of what is cut at every byte in the clear
	}{{"", 1}, {"?tls=skip-verify", 23}, {"?compress=true", 7}} {
		proxy := faultproxy.New(t, db.Addr())
		router := routerOf(t, db.DSNAt(proxy.Addr())+protocol.params)
		for _, kind := range byteCuts {
			b := byteCutter{t: t, direct: direct, proxy: proxy, router: router, kind: kind}
			b.cutAll(faultproxy.Client, max(kind.sent, protocol.stride))
			b.cutAll(faultproxy.Upstream, max(kind.answered, protocol.stride))
		}
	}
}

// byteCutter cuts one kind of statement.
type byteCutter struct {
	t      *testing.T
	direct *sql.DB
	proxy  *faultproxy.Proxy
	router *shardrouter.Router
	kind   byteCut
}

// cutAll cuts ever later until the answer comes whole.
func (b *byteCutter) cutAll(from faultproxy.Side, step int) {
	b.t.Helper()
	for n := 0; !b.cutAt(from, n); n += step {
		if n > 400*step {
			b.t.Fatalf("%s: the answer never comes whole", b.kind.name)
		}
	}
}

// cutAt cuts after n bytes of a side, holds what is said of the statement against
// the rows, and reports whether the answer came whole.
func (b *byteCutter) cutAt(from faultproxy.Side, n int) (whole bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 30*time.Second)
	defer cancel()
	if _, err := b.direct.ExecContext(ctx, "DELETE FROM cuts WHERE id = 1"); err != nil {
		b.t.Fatal(err)
	}
	l, err := b.router.Lease(ctx, on("server_1"), "")
	if err != nil {
		b.t.Fatal(err)
	}
	err = b.kind.run(ctx, l.Conn(), func() { b.proxy.CutWithin(l.LocalAddr(), from, n) })
	l.Release()
	var rows int
	if err := b.direct.QueryRowContext(ctx, "SELECT COUNT(*) FROM cuts WHERE id = 1").Scan(&rows); err != nil {
		b.t.Fatal(err)
	}
	if b.kind.whole(err) {
		if rows != b.kind.rows {
			b.t.Errorf("%s after %d bytes: %v, and %d rows", b.kind.name, n, err, rows)
		}
		if n == 0 {
			b.t.Errorf("%s was not cut", b.kind.name)
		}
		return true
	}
	progress := shardrouter.ProgressOf(err)
	if !errors.Is(err, shardrouter.ErrConnLost) && !errors.Is(err, shardrouter.ErrOutcomeUnknown) {
		b.t.Errorf("%s cut after %d bytes: %v tells nothing", b.kind.name, n, err)
	}
	if rows > 0 && progress != shardrouter.Unknown {
		b.t.Errorf("%s cut after %d bytes: %v, and %d rows", b.kind.name, n, progress, rows)
	}
	return false
}
