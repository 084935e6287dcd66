package shardrouter

import "testing"

func TestLeavesResidue(t *testing.T) {
	tests := []struct {
		query, reason string
		want          bool
	}{
		{"SELECT gold FROM players WHERE name = ?", "reads", false},
		{"  select 1 ;  ", "a lone semicolon ends it", false},
		{"-- name: GetPlayer :one\nSELECT * FROM players", "generators put comments in front", false},
		{"/* trace=1 */ UPDATE players SET gold = 1 /* id=2 */", "and behind", false},
		{"(SELECT 1) UNION (SELECT 2)", "brackets", false},
		{"SELECT @@sql_mode", "reads a system variable", false},
		{"SELECT 'ada@example.com', \"@\", `@`", "quoted", false},
		{"SELECT 'it''s'", "a doubled quote", false},
		{`SELECT 'it\'s'`, "an escaped quote and nothing suspicious", false},
		{"INSERT INTO t VALUES (1) RETURNING id", "writes rows only", false},
		{"CREATE TABLE t (n INT)", "not of this connection", false},
		{"CREATE OR REPLACE TABLE t (n INT)", "not of this connection", false},
		{"SELECT 5--3", "no comment without a space", false},
		{"SELECT /*+ MAX_EXECUTION_TIME(100) */ 1", "a hint binds this statement alone", false},

		{"", "nothing is known of it", true},
		{"BEGIN", "opens a transaction", true},
		{"start transaction", "opens a transaction", true},
		{"SET @v = 1", "a variable", true},
		{"SET sql_mode = ''", "a setting", true},
		{"USE other", "another database", true},
		{"LOCK TABLES t WRITE", "a lock", true},
		{"XA START 'x'", "a transaction", true},
		{"CALL p()", "may do anything", true},
		{"DO GET_LOCK('x', 1)", "a user lock", true},
		{"SELECT get_lock('x', 1)", "a user lock", true},
		{"SELECT GET_LOCK ('x', 1)", "a user lock", true},
		{"SELECT `GET_LOCK`('x', 1)", "a user lock, its name quoted", true},
		{"SELECT \"get_lock\" ('x', 1)", "likewise, with ANSI_QUOTES", true},
		{"SELECT 1,GET_LOCK\xa0('x', 1)", "in Latin-1 that is a blank", true},
		{"SELECT 1,\xa0get_lock('x', 1)", "likewise", true},
		{"SELECT `get_lock`\xa0('x', 1)", "likewise, behind the quotes", true},
		{"SELECT /*+ QB_NAME(`*/`) */ GET_LOCK('x', 1), `n` FROM t", "in MySQL's hints, quotes hide the end", true},
		{"SELECT /*+ QB_NAME(`q`) */ 1", "a hint that quotes a name", false},
		{"SELECT gold_\xe4 FROM players", "a name that is not ASCII", false},
		{"SELECT 'get_lock', `get_lock` FROM t", "a text and a column", false},
		{"SELECT gold INTO @g FROM players", "a variable", true},
		{"SELECT @g := gold FROM players", "a variable", true},
		{"SELECT @'g' := 1", "a quoted variable", true},
		{"CREATE TEMPORARY TABLE t (n INT)", "a temporary table", true},
		{"DROP DATABASE game", "the connection has no database any more", true},
		{"DROP SCHEMA IF EXISTS game", "the connection has no database any more", true},
		{"create or replace temporary table t (n int)", "a temporary table", true},
		{"CREATE /* x */ TEMPORARY TABLE t (n INT)", "a temporary table", true},
		{"SELECT 1; SET @v = 1", "a second statement", true},
		{"SELECT 1 /*! , @v := 1 */", "servers execute it", true},
		{"/*M!100000 SET @v = 1 */ SELECT 1", "MariaDB executes it", true},
		{`SELECT 'a\', @v := 1, 'b'`, "without backslash escapes the variable is outside", true},
		{"SELECT 'open", "ends in a quote that never closes", false},
		{"HANDLER t OPEN", "a handler", true},
		{"SAVEPOINT s", "part of a transaction", true},
	}
	for _, tt := range tests {
		if got := leavesResidue(tt.query); got != tt.want {
			t.Errorf("leavesResidue(%q) = %v, want %v: %s", tt.query, got, tt.want, tt.reason)
		}
	}
}

func FuzzLeavesResidue(f *testing.F) {
	for _, seed := range []string{"SELECT 1", "'\\", "/*", "--", "CREATE OR", "@", "((", "SELECT `"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		leavesResidue(query) // must come to an end, whatever it is given
		if !leavesResidue("SET @v = 1; " + query) {
			t.Error("what follows a SET made it harmless")
		}
		if !leavesResidue("SELECT @v := 1, " + query) {
			t.Error("what follows a variable made it harmless")
		}
	})
}

func BenchmarkLeavesResidue(b *testing.B) {
	const query = "SELECT id, name, gold, level, guild_id, updated_at FROM players WHERE name = ? AND realm = ? FOR UPDATE"
	b.ReportAllocs()
	for b.Loop() {
		if leavesResidue(query) {
			b.Fatal("it leaves none")
		}
	}
}
