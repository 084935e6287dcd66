package shardrouter_test

import (
	"strings"
	"testing"

	"github.com/shardhop/shardhop/shardrouter"
)

func TestOnlyReads(t *testing.T) {
	tests := []struct {
		query, reason string
		want          bool
	}{
		{"SELECT gold FROM players WHERE name = ?", "a table", true},
		{"  select 1 ;  ", "a lone semicolon ends it", true},
		{"-- name: GetPlayer :one\nSELECT * FROM players", "generators put comments in front", true},
		{"SELECT /* trace=1 */ 1 # end", "and in the middle, and behind", true},
		{"(SELECT 1) UNION ALL (SELECT 2) ORDER BY 1 LIMIT 3", "brackets", true},
		{"WITH rich AS (SELECT * FROM players WHERE gold > 5) SELECT COUNT(*) FROM rich", "a query with a name", true},
		{"SELECT name, RANK() OVER (ORDER BY gold DESC) FROM players", "a window", true},
		{"SELECT COALESCE(MAX(`gold`), 0), NOW(6), IF(a IN (1, 2), 'x', \"y\") FROM t", "built-in functions", true},
		{"SELECT 'Jürgen; DROP TABLE t', \"INTO @v\" FROM t /* für */", "quoted", true},
		{"SELECT 'it''s', @@global.read_only, replace(a, 'b', 'c') FROM t", "a doubled quote, a system variable, a function named like a statement", true},
		{"SELECT a.b, `a`.`b`, x'41', 5--3, a->'$.b' FROM db.a JOIN c USING (id)", "names and operators", true},
		{"SHOW CREATE TABLE t", "a table", true},
		{"show full columns from t like 'a%'", "a table", true},
		{"SHOW GLOBAL STATUS WHERE Variable_name IN ('Uptime')", "figures of the server", true},
		{"EXPLAIN SELECT * FROM t", "a plan", true},
		{"DO SLEEP(1), 2", "computes, and forgets it", true},

		{"", "nothing is known of it", false},
		{"INSERT INTO t VALUES (1)", "writes", false},
		{"UPDATE t SET a = 1", "writes", false},
		{"DO RELEASE_LOCK('a')", "not on the list", false},
		{"SET @v = 1", "a variable", false},
		{"TABLE t", "not known", false},
		{"CALL p()", "may do anything", false},
		{"SELECT a INTO @v FROM t", "a variable", false},
		{"SELECT a FROM t INTO OUTFILE '/tmp/x'", "a file", false},
		{"SELECT a FROM t FOR UPDATE", "locks", false},
		{"SELECT a FROM t FOR SHARE", "locks", false},
		{"SELECT a FROM t LOCK IN SHARE MODE", "locks", false},
		{"SELECT @v := a FROM t", "a variable", false},
		{"SELECT @v FROM t", "what it reads hangs on its connection", false},
		{"SELECT dig(1)", "a stored function", false},
		{"SELECT game.count(1)", "a stored function of that name", false},
		{"SELECT game . abs(1)", "a stored function of that name", false},
		{"SELECT count (1)", "a stored function, unless the SQL mode ignores the blank", false},
		{"SELECT count/**/(1)", "likewise", false},
		{"SELECT `abs`(1)", "a stored function", false},
		{`SELECT "dig"(1)`, "a stored function under ANSI_QUOTES", false},
		{`SELECT "dig" /* x */ (1)`, "likewise", false},
		{"SELECT over (1)", "a stored function on servers without windows", false},
		{"SELECT GET_LOCK('a', 1)", "a user lock", false},
		{"SELECT LAST_INSERT_ID(7)", "sets what a later call gives", false},
		{"SELECT LOAD_FILE('/etc/passwd')", "not on the list", false},
		{"SELECT NEXTVAL(s)", "counts up", false},
		{"SELECT NEXT VALUE FOR s", "counts up", false},
		{"SELECT s.nextval", "counts up in Oracle's mode", false},
		{"SELECT 1; DELETE FROM t", "a second statement", false},
		{"SELECT 1 /*! FOR UPDATE */", "servers execute it", false},
		{"SELECT 1 /*M! FOR UPDATE */", "MariaDB executes it", false},
		{"/*!40000 SELECT */ 1", "servers execute it", false},
		{"SELECT /*+ QB_NAME(`*/`) */ 1", "where the hint ends hangs on the server", false},
		{`SELECT 'a\', dig(), 'b'`, "without backslash escapes the function is outside", false},
		{`SELECT 'a\\' FROM t`, "a backslash proves nothing", false},
		{"SELECT 'open", "never closes", false},
		{"SELECT 1 /* open", "never closes", false},
		{"SELECT [dig](1)", "quoted under MSSQL", false},
		{"SELECT {fn dig()}", "ODBC's brackets", false},
		{"SELECT $$ dig() $$", "quotes in newer servers", false},
		{"SELECT größe FROM t", "a byte of it may be a bracket's half", false},
		{"SELECT `größe` FROM t", "a byte of it may hide the quote", false},
		{"SELECT 1\x00 FROM t", "ends there for some", false},
		{"WITH x AS (SELECT 1) DELETE FROM t", "writes", false},
		{"WITH x (a) AS (SELECT 1) SELECT a FROM x", "looks like a function; the safe side", false},
		{"INSERT INTO t VALUES (1) RETURNING id", "writes", false},
		{"DELETE FROM t RETURNING id", "writes", false},
		{"ANALYZE SELECT 1", "runs it", false},
		{"EXPLAIN ANALYZE SELECT 1", "runs it", false},
		{"EXPLAIN UPDATE t SET a = 1", "not known", false},
		{"ANALYZE TABLE t", "writes", false},
		{"SELECT * FROM t PROCEDURE ANALYSE()", "runs a procedure", false},
		{"SHOW TABLES WHERE dig()", "a stored function", false},
		{"SHOW PROCEDURE STATUS", "not on the list", false},
		{"HANDLER t READ FIRST", "state of the connection", false},
	}
	for _, tt := range tests {
		if got := shardrouter.OnlyReads(tt.query); got != tt.want {
			t.Errorf("OnlyReads(%q) = %v, want %v: %s", tt.query, got, tt.want, tt.reason)
		}
	}
}

// FuzzOnlyReads holds that no statement stays a read when something dangerous
// is put into it, between any two of its words.
func FuzzOnlyReads(f *testing.F) {
	for _, seed := range []string{
		"SELECT a, COUNT(*) FROM t WHERE b = 'c' GROUP BY a", "SHOW TABLES", "SELECT '''' , \"a\" # x\n, `b`",
		"WITH x AS (SELECT 1) SELECT * FROM x -- y\n", "SELECT 1 /* a */ ; ", "SELECT @@x.y - 5--3", "((SELECT 1))",
	} {
		for at := range len(seed) {
			f.Add(seed, uint(at))
		}
	}
	dangers := []string{
		" INTO @v ", " FOR UPDATE ", " LOCK IN SHARE MODE ", " @v := 1 ", " dig() ", " `dig`() ", " game.abs(1) ",
		" NEXTVAL(s) ", " RETURNING ", " ANALYZE ", " /*! x */ ", " /*M! x */ ", " ; DELETE FROM t ", " \\ ", " count (1) ",
	}
	f.Fuzz(func(t *testing.T, query string, at uint) {
		reads := shardrouter.OnlyReads(query) // must come to an end, whatever it is given
		i := int(at % uint(len(query)+1))
		if !reads || quoted(query[:i]) {
			return
		}
		for _, danger := range dangers {
			if with := query[:i] + danger + query[i:]; shardrouter.OnlyReads(with) {
				t.Errorf("%q is taken for a read", with)
			}
		}
	})
}

// quoted reports whether what follows text stands in a quote or a comment.
func quoted(text string) bool {
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		end := ""
		switch {
		case rest[0] == '\'' || rest[0] == '"' || rest[0] == '`':
			end = rest[:1]
		case strings.HasPrefix(rest, "/*"):
			end, i = "*/", i+1
		case rest[0] == '#', strings.HasPrefix(rest, "--") && (len(rest) == 2 || rest[2] <= ' '):
			end = "\n"
		case rest == "/", rest == "-":
			return true // the danger would be cut in two, or begin a comment
		default:
			continue
		}
		at := strings.Index(text[i+1:], end)
		if at < 0 {
			return true
		}
		i += at + len(end)
	}
	return false
}

func BenchmarkOnlyReads(b *testing.B) {
	const query = "SELECT id, name, gold, level, guild_id, updated_at FROM players WHERE name = ? AND realm = ? ORDER BY gold"
	b.ReportAllocs()
	for b.Loop() {
		if !shardrouter.OnlyReads(query) {
			b.Fatal("it reads")
		}
	}
}
