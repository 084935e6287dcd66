package shardrouter_test

import (
	"flag"
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
	lab.Exec(t, server.RootDSN(),
		"CREATE OR REPLACE FUNCTION game.write_down(what VARCHAR(40)) RETURNS INT BEGIN INSERT INTO tx VALUES (what); RETURN 1; END",
		"CREATE OR REPLACE PROCEDURE game.write_it(what VARCHAR(40)) INSERT INTO tx VALUES (what)")
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
