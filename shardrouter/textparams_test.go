package shardrouter_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/shardhop/shardhop/shardrouter"
)

// A parameter is a value, whatever stands in it and whatever the mode and the
// character set of its connection.
func TestParametersStayValues(t *testing.T) {
	values := []string{"a'b", `a\'; -- `, `\`, `\\`, "'", "nul\x00", "no\xff\xfeutf8'", "😀'\"", "\x1a", "\n\r"}
	for _, params := range []shardrouter.DSN{
		"", "?sql_mode=%27NO_BACKSLASH_ESCAPES%27", "?sql_mode=%27NO_BACKSLASH_ESCAPES,ANSI_QUOTES%27",
		"?charset=latin1",
	} {
		resetTable(t, "(v VARBINARY(100))")
		f := newFleet(t, 1, func(c *shardrouter.Config) { c.Shards[0].DSN += params })
		for _, set := range []string{"DO 0", "SET sql_mode = 'NO_BACKSLASH_ESCAPES'", "SET sql_mode = ''"} {
			s := &session{f: f, shard: "server_1"}
			for _, v := range values {
				var got []byte
				err := shardrouter.Tx(t.Context(), s, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
					for _, stmt := range []string{set, "DELETE FROM tx"} {
						if _, err := tx.ExecContext(ctx, stmt); err != nil {
							return err
						}
					}
					if _, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES (?)", []byte(v)); err != nil {
						return err
					}
					return tx.QueryRowContext(ctx, "SELECT v FROM tx WHERE v = ?", []byte(v)).Scan(&got)
				})
				if err != nil || string(got) != v {
					t.Errorf("%q, %s: %q came back as %q, %v", params, set, v, got, err)
				}
			}
			s.end()
		}
	}
}

// In these character sets the backslash before a quote is the second half of a
// character, and what the quote lets out is run.
func TestParametersInAForeignCharacterSet(t *testing.T) {
	f := newFleet(t, 1, severalStatements)
	for _, set := range []string{
		"SET NAMES gbk", "SET NAMES 'gbk'", "set /* to */ names gbk", "SET CHARACTER SET gbk", "SET character_set_client = 'gbk'",
		"SET NAMES utf8mb4, character_set_client = gbk", "EXECUTE IMMEDIATE 'SET NAMES gbk'", "SET NAMES utf8mb4; SET NAMES gbk",
	} {
		l := f.lease(t, "server_1")
		if err := exec(t.Context(), l.Conn(), set); err != nil {
			t.Fatalf("%s: %v", set, err)
		}
		var one any // a column more is an error of Scan
		err := l.Conn().QueryRowContext(t.Context(), "SELECT CONCAT('x', ?)", "\xbf'), ('injected') -- ").Scan(&one)
		if err != nil {
			t.Errorf("%s: %v", set, err)
		}
		l.Release()
	}
	l := f.lease(t, "server_1")
	defer l.Release()
	var n int
	err := l.Conn().QueryRowContext(t.Context(), "SET sql_mode = 'NO_BACKSLASH_ESCAPES'; SELECT LENGTH(?)", "'); DROP TABLE tx -- ").Scan(&n)
	if err == nil {
		t.Error("a value was put into a text that changes the mode on its way")
	}
}

func TestSetsForeignText(t *testing.T) {
	for query, want := range map[string]bool{
		"SET NAMES utf8mb4": false, "set names 'utf8mb4' collate utf8mb4_bin;": false, "SET @a = 1": false,
		"SET NAMES gbk": true, "SET NAMES DEFAULT": true, "SET NAMES utf8mb4, character_set_client = gbk": true,
		"SET character_set_client = @x": true, "SET CHARACTER SET gbk": true, "SET CHARSET gbk": true,
		"SET NAMES utf8mb4 /*! , character_set_client = gbk */": true,
	} {
		if got := shardrouter.SetsForeignText(query); got != want {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
}
