package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// seen is what a server did, and what it should be taken for.
type seen struct {
	reason string
	err    error
	at     shardrouter.Occasion
	number uint16 // of the server's answer, 0 for none
	want   shardrouter.Verdict
}

func (s seen) check(t *testing.T) {
	t.Helper()
	if s.err == nil {
		t.Errorf("%s: no error", s.reason)
		return
	}
	var number uint16
	if answer, ok := errors.AsType[*mysql.MySQLError](s.err); ok {
		number = answer.Number
	}
	if got := shardrouter.Classify(s.err, s.at); got != s.want || number != s.number {
		t.Errorf("%s: %v (number %d) is %v, want number %d and %v", s.reason, s.err, number, got, s.number, s.want)
	}
}

// connect makes one connection attempt of at most 300 ms.
func connect(t *testing.T, dsn string) error {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	nodes, err := parse(shardrouter.DSN(dsn))
	if err != nil {
		t.Fatal(err)
	}
	connector, err := mysql.NewConnector(nodes[0])
	if err != nil {
		t.Fatal(err)
	}
	conn, err := connector.Connect(ctx)
	if err == nil {
		return conn.Close()
	}
	return err
}

// listener accepts on a loopback port, greets each connection and closes it,
// or keeps it open when greeting is empty, until the test ends.
func listener(t *testing.T, greeting string, silent bool) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var open []net.Conn
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, greeting)
			if open = append(open, c); !silent {
				_ = c.Close()
			}
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
		for _, c := range open {
			_ = c.Close()
		}
	})
	return l.Addr().String()
}

func TestClassifyWithoutServer(t *testing.T) {
	at := func(addr string) string { return "app:hunter2@tcp(" + addr + ")/game" }
	closed := fmt.Sprintf("127.0.0.1:%d", lab.FreePort(t))
	for _, s := range []seen{
		{"nothing listens", connect(t, at(closed)), shardrouter.OnConnect, 0, shardrouter.VerdictUnreachable},
		{"accepts and stays silent", connect(t, at(listener(t, "", true))), shardrouter.OnConnect, 0, shardrouter.VerdictUnreachable},
		{"accepts and closes", connect(t, at(listener(t, "", false))), shardrouter.OnConnect, 0, shardrouter.VerdictUnreachable},
		{"speaks something else", connect(t, at(listener(t, "HTTP/1.1 400 Bad Request\r\n\r\n", false))), shardrouter.OnConnect, 0, shardrouter.VerdictUnreachable},
	} {
		s.check(t)
	}
}

func TestClassifyRefusals(t *testing.T) {
	server := lab.MariaDB(t, lab.WithArgs("--max-connections=10", "--extra-max-connections=1"))
	lab.Exec(t, server.RootDSN(), "CREATE USER one@'%' IDENTIFIED BY 'pw' WITH MAX_USER_CONNECTIONS 1",
		"CREATE USER few@'%' IDENTIFIED BY 'pw' WITH MAX_QUERIES_PER_HOUR 2", "GRANT ALL ON game.* TO one@'%', few@'%'")
	as := func(account, database string) string { return account + "@tcp(" + server.Addr() + ")/" + database }

	first := grab(t, lab.Open(t, as("one:pw", "game")))
	for _, s := range []seen{
		{"wrong password", connect(t, as("one:wrong", "game")), shardrouter.OnConnect, 1045, shardrouter.VerdictMisconfigured},
		{"no right to the database", connect(t, as("few:pw", "mysql")), shardrouter.OnConnect, 1044, shardrouter.VerdictMisconfigured},
		{"no such database", connect(t, strings.Replace(server.RootDSN(), "/game", "/nowhere", 1)), shardrouter.OnConnect, 1049, shardrouter.VerdictMisconfigured},
		{"a system variable that is none", connect(t, as("few:pw", "game?no_such_variable=1")), shardrouter.OnConnect, 1193, shardrouter.VerdictMisconfigured},
		{"the user has all its connections", connect(t, as("one:pw", "game")), shardrouter.OnConnect, 1226, shardrouter.VerdictBusy},
	} {
		s.check(t)
	}
	_ = first.Close()

	few := grab(t, lab.Open(t, as("few:pw", "game")))
	var err error
	for i := 0; err == nil && i < 10; i++ {
		_, err = few.ExecContext(t.Context(), "DO 1")
	}
	seen{"the user has had all its queries", err, shardrouter.OnStatement, 1226, shardrouter.VerdictBusy}.check(t)

	app := lab.Open(t, server.DSN())
	for i, full := 0, error(nil); full == nil; i++ {
		if i > 12 {
			t.Fatal("the server never gets full")
		}
		var conn *sql.Conn
		if conn, full = app.Conn(t.Context()); full == nil {
			t.Cleanup(func() { _ = conn.Close() })
			continue
		}
		seen{"full", full, shardrouter.OnConnect, 1040, shardrouter.VerdictBusy}.check(t)
	}
}

func TestClassifyAnswers(t *testing.T) {
	server := lab.MariaDB(t)
	root, app := lab.Open(t, server.RootDSN()), lab.Open(t, server.DSN()+withReadTimeout(server.DSN()))
	lab.Exec(t, server.DSN(), "CREATE TABLE p (id INT PRIMARY KEY, gold INT) ENGINE=InnoDB", "INSERT INTO p VALUES (1,0),(2,0)")

	seen{"duplicate key", execOn(t, app, "INSERT INTO p VALUES (1,1)"), shardrouter.OnStatement, 1062, shardrouter.VerdictStatement}.check(t)
	seen{"statement timeout", execOn(t, app, "SET STATEMENT max_statement_time=0.05 FOR SELECT SLEEP(5)"), shardrouter.OnStatement, 1969, shardrouter.VerdictStatement}.check(t)
	seen{"deadlock", deadlock(t, app), shardrouter.OnStatement, 1213, shardrouter.VerdictRolledBack}.check(t)
	seen{"changed since the snapshot", changedSince(t, app), shardrouter.OnStatement, 1020, shardrouter.VerdictRolledBack}.check(t)
	seen{"KILL QUERY", killed(t, root, app, "KILL QUERY %d"), shardrouter.OnStatement, 1317, shardrouter.VerdictRolledBack}.check(t)
	seen{"KILL CONNECTION", killed(t, root, app, "KILL CONNECTION %d"), shardrouter.OnStatement, 0, shardrouter.VerdictLost}.check(t)

	tx := begin(t, app, &sql.TxOptions{ReadOnly: true})
	_, err := tx.ExecContext(t.Context(), "UPDATE p SET gold=1")
	seen{"a write in a READ ONLY transaction", err, shardrouter.OnReadOnlyTx, 1792, shardrouter.VerdictStatement}.check(t)
	_ = tx.Rollback()

	tx = begin(t, app, nil)
	if _, err := tx.ExecContext(t.Context(), "UPDATE p SET gold=1 WHERE id=1"); err != nil {
		t.Fatal(err)
	}
	lab.Exec(t, server.RootDSN(), "SET GLOBAL read_only=1")
	seen{"COMMIT on a server gone read-only", tx.Commit(), shardrouter.OnCommit, 1290, shardrouter.VerdictReadOnly}.check(t)
	seen{"a write on a server gone read-only", execOn(t, app, "UPDATE p SET gold=1"), shardrouter.OnStatement, 1290, shardrouter.VerdictReadOnly}.check(t)
	lab.Exec(t, server.RootDSN(), "SET GLOBAL read_only=0")

	conn, tx := grab(t, app), begin(t, app, nil)
	if _, err := tx.ExecContext(t.Context(), "UPDATE p SET gold=1 WHERE id=1"); err != nil {
		t.Fatal(err)
	}
	server.Freeze()
	_, err = conn.ExecContext(t.Context(), "DO 1")
	seen{"a statement on a frozen server", err, shardrouter.OnStatement, 0, shardrouter.VerdictLost}.check(t)
	seen{"COMMIT on a frozen server", tx.Commit(), shardrouter.OnCommit, 0, shardrouter.VerdictUnknown}.check(t)
	seen{"connecting to a frozen server", connect(t, server.DSN()), shardrouter.OnConnect, 0, shardrouter.VerdictUnreachable}.check(t)
	server.Thaw()

	conn = grab(t, app)
	server.Kill()
	_, err = conn.ExecContext(t.Context(), "DO 1")
	seen{"a statement after a crash", err, shardrouter.OnStatement, 0, shardrouter.VerdictLost}.check(t)
	seen{"connecting after a crash", connect(t, server.DSN()), shardrouter.OnConnect, 0, shardrouter.VerdictUnreachable}.check(t)
}

// withReadTimeout returns what to append to a DSN so that a frozen server
// costs the test half a second.
func withReadTimeout(dsn string) string {
	if strings.Contains(dsn, "?") {
		return "&readTimeout=500ms"
	}
	return "?readTimeout=500ms"
}

func execOn(t *testing.T, db *sql.DB, statement string) error {
	_, err := db.ExecContext(t.Context(), statement)
	return err
}

func grab(t *testing.T, db *sql.DB) *sql.Conn {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func begin(t *testing.T, db *sql.DB, opts *sql.TxOptions) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// deadlock lets two transactions lock two rows in opposite order and returns
// the loser's error.
func deadlock(t *testing.T, db *sql.DB) error {
	const lock = "UPDATE p SET gold=gold+1 WHERE id=?"
	a, b := begin(t, db, nil), begin(t, db, nil)
	for id, tx := range map[int]*sql.Tx{1: a, 2: b} {
		if _, err := tx.ExecContext(t.Context(), lock, id); err != nil {
			t.Fatal(err)
		}
	}
	other := make(chan error, 1)
	go func() {
		_, err := a.ExecContext(t.Context(), lock, 2)
		other <- err
	}()
	_, err := b.ExecContext(t.Context(), lock, 1)
	_ = b.Rollback()
	err = errors.Join(err, <-other)
	_ = a.Rollback()
	return err
}

// changedSince writes a row that another transaction changed after the
// snapshot, under the isolation that newer MariaDB servers have by default.
func changedSince(t *testing.T, db *sql.DB) error {
	conn := grab(t, db)
	defer func() { _, _ = conn.ExecContext(t.Context(), "ROLLBACK") }()
	for _, s := range []string{"SET innodb_snapshot_isolation=ON", "START TRANSACTION WITH CONSISTENT SNAPSHOT", "SELECT * FROM p"} {
		if _, err := conn.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := execOn(t, db, "UPDATE p SET gold=gold+1 WHERE id=1"); err != nil {
		t.Fatal(err)
	}
	_, err := conn.ExecContext(t.Context(), "UPDATE p SET gold=gold+1 WHERE id=1")
	return err
}

// killed runs a long statement, kills it from another connection and returns
// its error.
func killed(t *testing.T, root, db *sql.DB, kill string) error {
	conn := grab(t, db)
	var id int64
	if err := conn.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() {
		_, err := conn.ExecContext(t.Context(), "UPDATE p SET gold=SLEEP(30) WHERE id=1")
		result <- err
	}()
	lab.Eventually(t, 5*time.Second, "the statement to run", func() bool {
		var n int
		err := root.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.processlist WHERE id=? AND info LIKE 'UPDATE%'", id).Scan(&n)
		return err == nil && n == 1
	})
	if err := execOn(t, root, fmt.Sprintf(kill, id)); err != nil {
		t.Fatal(err)
	}
	return <-result
}
