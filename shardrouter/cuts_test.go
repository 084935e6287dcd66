package shardrouter_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

var update = flag.Bool("update", false, "write the table of outcomes into the docs")

const outcomesDoc = "../docs/outcomes.md"

// needle stands in what is cut, in the text of a statement or in the argument
// of a prepared one.
const needle = "needle-42"

// cutKind is a kind of statement that is cut where match goes over the wire.
type cutKind struct {
	name, match string
	run         func(ctx context.Context, s *session, cut func()) error
}

// tx reports whether the library runs the statement in a transaction of its own.
func (k cutKind) tx() bool { return strings.Contains(k.name, "of `Tx") }

// cutKinds are cut each alone on a lease's connection.
var cutKinds = []cutKind{
	{"`Exec` of a write", needle, func(ctx context.Context, s *session, cut func()) error {
		cut()
		return exec(ctx, s.lease.Conn(), "INSERT INTO tx VALUES ('"+needle+"')")
	}},
	{"`Query` that writes", needle, func(ctx context.Context, s *session, cut func()) error {
		cut()
		return readAll(ctx, s.lease.Conn(), "INSERT INTO tx VALUES ('"+needle+"') RETURNING w")
	}},
	{"`Query` that reads", needle, func(ctx context.Context, s *session, cut func()) error {
		cut()
		return readAll(ctx, s.lease.Conn(), "SELECT w FROM tx WHERE w = '"+needle+"'")
	}},
	{"prepared write", needle, func(ctx context.Context, s *session, cut func()) error {
		cut()
		_, err := s.lease.Conn().ExecContext(ctx, "INSERT INTO tx VALUES (?)", needle)
		return err
	}},
	{"write in `BeginTx`", needle, func(ctx context.Context, s *session, cut func()) error {
		tx, err := s.lease.Conn().BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		cut()
		if _, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES ('"+needle+"')"); err != nil {
			return err
		}
		return tx.Commit()
	}},
	{"its COMMIT", "COMMIT", func(ctx context.Context, s *session, cut func()) error {
		tx, err := s.lease.Conn().BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES ('"+needle+"')"); err != nil {
			return err
		}
		cut()
		return tx.Commit()
	}},
	{"statement of `Tx`", needle, func(ctx context.Context, s *session, cut func()) error {
		return shardrouter.Tx(ctx, s, withRow, func(ctx context.Context, tx *sql.Tx) error { return writeCut(ctx, tx, cut, func() {}) })
	}},
	{"COMMIT of `Tx`", "COMMIT", func(ctx context.Context, s *session, cut func()) error {
		return shardrouter.Tx(ctx, s, withRow, func(ctx context.Context, tx *sql.Tx) error { return writeCut(ctx, tx, func() {}, cut) })
	}},
	{"COMMIT of `Tx` without outcome row", "COMMIT", func(ctx context.Context, s *session, cut func()) error {
		return shardrouter.Tx(ctx, s, withoutRow, func(ctx context.Context, tx *sql.Tx) error { return writeCut(ctx, tx, func() {}, cut) })
	}},
	{"COMMIT of `TxAnswer` with a key", "COMMIT", func(ctx context.Context, s *session, cut func()) error {
		opts := shardrouter.TxOptions{Key: rand.Text()}
		answer, err := shardrouter.TxAnswer(ctx, s, opts, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			return []byte("one"), writeCut(ctx, tx, func() {}, cut)
		})
		if err == nil && string(answer.Body) != "one" {
			return fmt.Errorf("the answer is %q", answer.Body)
		}
		return err
	}},
}

// writeCut is the body of a transaction, with a cut before its statement or
// after it. A second run is not cut.
func writeCut(ctx context.Context, tx *sql.Tx, before, after func()) error {
	before()
	if _, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES ('"+needle+"')"); err != nil {
		return err
	}
	after()
	return nil
}

// cutMoment is a moment at which a connection is cut.
type cutMoment struct {
	name string
	make func(t *testing.T, f *fleet, l *shardrouter.Lease, match string)
}

// cuts are the moments, in the order of the table's columns.
var cuts = []cutMoment{
	{"before it was sent", func(t *testing.T, f *fleet, l *shardrouter.Lease, _ string) {
		f.set(faultproxy.Cut, "server_1")
		lab.Eventually(t, 5*time.Second, "the cut has come through", l.HungUp)
	}},
	{"on its way", func(_ *testing.T, f *fleet, _ *shardrouter.Lease, match string) {
		f.proxies["server_1"].CutAfter([]byte(match), faultproxy.BeforeForward)
	}},
	{"when the server had it", func(_ *testing.T, f *fleet, _ *shardrouter.Lease, match string) {
		f.proxies["server_1"].CutAfter([]byte(match), faultproxy.AfterForward)
	}},
	{"instead of the answer", func(_ *testing.T, f *fleet, _ *shardrouter.Lease, match string) {
		f.proxies["server_1"].CutAfter([]byte(match), faultproxy.AfterReply)
	}},
}

// A connection is cut at every moment of a statement. What the error says must
// hold of the rows, and the table in the docs says the same.
func TestCuts(t *testing.T) {
	table := "| statement |"
	for _, c := range cuts {
		table += " " + c.name + " |"
	}
	table += "\n|---|" + strings.Repeat("---|", len(cuts)) + "\n"
	for _, kind := range cutKinds {
		table += "| " + kind.name + " |"
		for _, c := range cuts {
			resetTable(t, "(w VARCHAR(40))")
			table += " " + measure(t, kind, c) + " |"
		}
		table += "\n"
	}
	holdTable(t, table)
}

// measure cuts one statement at one moment, and holds what is said of it against
// the rows.
func measure(t *testing.T, kind cutKind, c cutMoment) string {
	t.Helper()
	f := newFleet(t, 2)
	l := f.lease(t, "server_1")
	s := &session{f: f, shard: "server_1", lease: l}
	cut := sync.OnceFunc(func() { c.make(t, f, l, kind.match) })
	err := kind.run(t.Context(), s, cut)
	s.end()
	f.set(faultproxy.Pass, "server_1")
	rows := count(t)
	if err == nil {
		if rows != 1 || !kind.tx() {
			t.Errorf("%s cut %s: no error, and %d rows", kind.name, c.name, rows)
		}
		return "committed"
	}
	progress := shardrouter.ProgressOf(err)
	if rows > 1 || rows == 1 && progress != shardrouter.Unknown {
		t.Errorf("%s cut %s: %v, and %d rows", kind.name, c.name, progress, rows)
	}
	return progress.String()
}

// holdTable compares the table in the docs with what was measured.
func holdTable(t *testing.T, table string) {
	t.Helper()
	const begin, end = "<!-- cuts: written by go test ./shardrouter -run TestCuts -update -->\n\n", "\n<!-- end of cuts -->"
	doc, err := os.ReadFile(outcomesDoc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(doc), begin)
	old, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the table", outcomesDoc)
	}
	if *update {
		if err := os.WriteFile(outcomesDoc, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != table {
		t.Errorf("%s says\n%s\nand it is\n%s", outcomesDoc, old, table)
	}
}
