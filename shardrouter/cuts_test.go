package shardrouter_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"strings"
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

// statements that are cut, each alone on a lease's connection.
var cutKinds = []struct {
	name, match string
	run         func(ctx context.Context, conn *sql.Conn, cut func()) error
}{
	{"`Exec` of a write", needle, func(ctx context.Context, conn *sql.Conn, cut func()) error {
		cut()
		return exec(ctx, conn, "INSERT INTO tx VALUES ('"+needle+"')")
	}},
	{"`Query` that writes", needle, func(ctx context.Context, conn *sql.Conn, cut func()) error {
		cut()
		return readAll(ctx, conn, "INSERT INTO tx VALUES ('"+needle+"') RETURNING w")
	}},
	{"`Query` that reads", needle, func(ctx context.Context, conn *sql.Conn, cut func()) error {
		cut()
		return readAll(ctx, conn, "SELECT w FROM tx WHERE w = '"+needle+"'")
	}},
	{"prepared write", needle, func(ctx context.Context, conn *sql.Conn, cut func()) error {
		cut()
		_, err := conn.ExecContext(ctx, "INSERT INTO tx VALUES (?)", needle)
		return err
	}},
	{"write in `BeginTx`", needle, func(ctx context.Context, conn *sql.Conn, cut func()) error {
		tx, err := conn.BeginTx(ctx, nil)
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
	{"its COMMIT", "COMMIT", func(ctx context.Context, conn *sql.Conn, cut func()) error {
		tx, err := conn.BeginTx(ctx, nil)
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
}

// cuts are the moments, in the order of the table's columns.
var cuts = []struct {
	name string
	make func(t *testing.T, f *fleet, l *shardrouter.Lease, match string)
}{
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
			f := newFleet(t, 1)
			l := f.lease(t, "server_1")
			err := kind.run(t.Context(), l.Conn(), func() { c.make(t, f, l, kind.match) })
			if err == nil {
				t.Fatalf("%s cut %s: no error", kind.name, c.name)
			}
			progress := shardrouter.ProgressOf(err)
			l.Release()
			f.set(faultproxy.Pass, "server_1")
			if rows := count(t); rows > 1 || rows == 1 && progress != shardrouter.Unknown {
				t.Errorf("%s cut %s: %v, and %d rows", kind.name, c.name, progress, rows)
			}
			table += fmt.Sprintf(" %v |", progress)
		}
		table += "\n"
	}
	holdTable(t, table)
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
