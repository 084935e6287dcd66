package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// stage makes a table that shows whether a stored function was called, and
// returns a connection that may create functions.
func stage(t *testing.T) *sql.Conn {
	t.Helper()
	lab.Exec(t, server.RootDSN(),
		"CREATE OR REPLACE TABLE game.touched (n INT)",
		"CREATE OR REPLACE TABLE game.t (a INT, b VARCHAR(20))",
		"INSERT INTO game.t VALUES (1, 'x'), (2, 'y')",
		"CREATE OR REPLACE SEQUENCE game.s",
		"CREATE OR REPLACE FUNCTION game.dig() RETURNS INT BEGIN INSERT INTO game.touched VALUES (1); RETURN 1; END",
	)
	db, err := sql.Open("mysql", server.RootDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return grab(t, db)
}

func touched(t *testing.T, conn *sql.Conn) int {
	t.Helper()
	var n int
	if err := conn.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM game.touched").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// readAll runs a query and reads all of it.
func readAll(ctx context.Context, conn *sql.Conn, query string) error {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		continue
	}
	return rows.Err()
}

// No stored function can take the place of one that a read may call.
func TestReadingFunctionsAreTheServersOwn(t *testing.T) {
	conn := stage(t)
	for _, name := range shardrouter.ReadingFunctions() {
		for arity, args := range []string{"", "1", "1, 1", "1, 1, 1"} {
			params := strings.Join([]string{"a INT", "b INT", "c INT"}[:arity], ", ")
			body := "RETURNS INT BEGIN INSERT INTO game.touched VALUES (1); RETURN 1; END"
			if _, err := conn.ExecContext(t.Context(), fmt.Sprintf("CREATE OR REPLACE FUNCTION game.`%s` (%s) %s", name, params, body)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			query := fmt.Sprintf("SELECT %s(%s)", name, args)
			if name != "SLEEP" && !shardrouter.OnlyReads(query) {
				t.Errorf("%s is no read", query)
			}
			_ = readAll(t.Context(), conn, query) // most refuse the arguments
			if touched(t, conn) != 0 {
				t.Fatalf("%s called a stored function", query)
			}
		}
		if _, err := conn.ExecContext(t.Context(), fmt.Sprintf("DROP FUNCTION game.`%s`", name)); err != nil {
			t.Fatal(err)
		}
	}
}

// What is taken for a read changes nothing on a real server and leaves nothing on
// the connection, in any SQL mode and character set: statements are put together at
// random out of harmless and dangerous pieces.
func TestReadsWriteNothing(t *testing.T) {
	conn := stage(t)
	pieces := strings.Split("SELECT|SELECT|SELECT|a|b|1|'x'|\"x\"|`a`|FROM t|FROM t|WHERE|=|,|,|(|)|(SELECT 1)|COUNT(*)|MAX(a)|dig()|dig ()|"+
		"`dig`()|\"dig\"()|[dig]()|game.dig()|abs(1)|count (1)|dig|s.nextval|NEXTVAL(s)|NEXT VALUE FOR s|FOR UPDATE|LOCK IN SHARE MODE|"+
		"INTO @v|@v := 1|@@sql_mode|;|DELETE FROM t|/* x */|/*! dig() */|/*M! , dig() */|-- x\n|# x\n|'|\"|\\|UNION|AS x|LIMIT 1|FROM DUAL|"+
		"WITH x AS (SELECT 1)|SHOW TABLES WHERE|SHOW STATUS|EXPLAIN|ANALYZE|OVER ()|||{fn dig()}|--|/|"+
		"GET_LOCK('k', 0)|`GET_LOCK`('k', 0)|LAST_INSERT_ID(7)|'\x81'|\"\x81\"|'\xbf|\xe3'|`\x81`|_gbk|_sjis'\x81'|x'27'|'a''b'|CASE WHEN 1 THEN dig() END|"+
		"NEXTVAL(`s`)|SETVAL(s, 9)|(SELECT dig())|:=|@|DO|DO dig()|/*|*/|\n|CONVERT('x' USING gbk)|BENCHMARK(1, dig())", "|")
	charsets := []string{"utf8mb4", "gbk", "sjis", "big5", "latin1"}
	modes := []string{"", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT,IGNORE_SPACE", "ORACLE", "MSSQL", "ANSI"}
	random := rand.New(rand.NewPCG(5, 2026))
	reads, worked := 0, 0
	for reads < 2500 {
		parts := []string{"SELECT"}
		for range 1 + random.IntN(7) {
			parts = append(parts, pieces[random.IntN(len(pieces))])
		}
		query := strings.Join(parts, []string{" ", ""}[random.IntN(5)/4])
		if !shardrouter.OnlyReads(query) {
			continue
		}
		if reads%50 == 0 {
			mode := modes[reads/50%len(modes)]
			charset := charsets[reads/50%len(charsets)]
			if _, err := conn.ExecContext(t.Context(), "SET sql_mode = '"+mode+"', NAMES "+charset); err != nil {
				t.Fatal(err)
			}
		}
		reads++
		if _, err := conn.ExecContext(t.Context(), "START TRANSACTION READ ONLY"); err != nil {
			t.Fatal(err)
		}
		err := readAll(t.Context(), conn, query)
		var refused *mysql.MySQLError
		switch {
		case err == nil:
			worked++
		case !errors.As(err, &refused):
			t.Fatalf("%q: %v", query, err)
		case refused.Number == 1792:
			t.Errorf("%q tried to write: %v", query, err)
		}
		if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
	}
	var next, variable, locked, id int
	if err := conn.QueryRowContext(t.Context(), "SELECT next_not_cached_value, @v IS NOT NULL, IS_USED_LOCK('k') IS NOT NULL, LAST_INSERT_ID() FROM s").Scan(&next, &variable, &locked, &id); err != nil {
		t.Fatal(err)
	}
	if next != 1 || variable != 0 || locked != 0 || id != 0 || touched(t, conn) != 0 {
		t.Errorf("the sequence stands at %d, a variable is set: %d, a lock: %d, an ID: %d, %d calls", next, variable, locked, id, touched(t, conn))
	}
	if worked < 100 {
		t.Errorf("only %d of %d reads were good SQL", worked, reads)
	}
}

// A lease knows whether everything on it was a read.
func TestLeaseOnlyRead(t *testing.T) {
	resetTable(t, "(n INT)")
	tests := []struct {
		name string
		run  func(conn *sql.Conn) error
		want bool
	}{
		{"nothing", func(*sql.Conn) error { return nil }, true},
		{"ping", func(c *sql.Conn) error { return c.PingContext(t.Context()) }, true},
		{"query", func(c *sql.Conn) error { return readAll(t.Context(), c, "SELECT n FROM tx") }, true},
		{"write", func(c *sql.Conn) error { return exec(t.Context(), c, "INSERT INTO tx VALUES (1)") }, false},
		{"write that failed", func(c *sql.Conn) error { _ = exec(t.Context(), c, "INSERT INTO tx VALUES ('x')"); return nil }, false},
		{"query that writes", func(c *sql.Conn) error { return readAll(t.Context(), c, "INSERT INTO tx VALUES (1) RETURNING n") }, false},
		{"stored function", func(c *sql.Conn) error { _ = readAll(t.Context(), c, "SELECT dig_deep()"); return nil }, false},
		{"procedure", func(c *sql.Conn) error { _ = readAll(t.Context(), c, "CALL dig_deep()"); return nil }, false},
		{"write with arguments", func(c *sql.Conn) error {
			_, err := c.ExecContext(t.Context(), "INSERT INTO tx VALUES (?)", 1)
			return err
		}, false},
		{"prepared", func(c *sql.Conn) error {
			stmt, err := c.PrepareContext(t.Context(), "SELECT n FROM tx WHERE n = ?")
			if err != nil {
				return err
			}
			defer stmt.Close()
			_, err = stmt.ExecContext(t.Context(), 1)
			return err
		}, true},
		{"read-only transaction", func(c *sql.Conn) error {
			tx, err := c.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			_, err = tx.ExecContext(t.Context(), "SELECT n FROM tx")
			return err
		}, true},
	}
	f := newFleet(t, 1, func(c *shardrouter.Config) { c.Shards[0].MaxConns = 1 })
	for _, tt := range tests {
		l, err := f.Lease(t.Context(), on("server_1"), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := tt.run(l.Conn()); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		l.Release()
		if got := l.OnlyRead(); got != tt.want {
			t.Errorf("%s: OnlyRead() = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func exec(ctx context.Context, conn *sql.Conn, statement string) error {
	_, err := conn.ExecContext(ctx, statement)
	return err
}
