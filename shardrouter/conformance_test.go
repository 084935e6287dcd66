package shardrouter_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// script is run on a connection of the driver alone and on one of the wrapper,
// and notes what came of each step.
type script struct {
	conn  *sql.Conn
	notes []string
}

func (s *script) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// exec notes the result of a statement, or its error by type and text.
func (s *script) exec(ctx context.Context, query string, args ...any) {
	res, err := s.conn.ExecContext(ctx, query, args...)
	if err != nil {
		s.note("%s: %T: %v", query, err, err)
		return
	}
	id, idErr := res.LastInsertId()
	n, nErr := res.RowsAffected()
	s.note("%s: id %d (%v), %d rows (%v)", query, id, idErr, n, nErr)
}

// query notes all results of a query, with the types of their columns.
func (s *script) query(ctx context.Context, query string, args ...any) {
	rows, err := s.conn.QueryContext(ctx, query, args...)
	if err != nil {
		s.note("%s: %T: %v", query, err, err)
		return
	}
	defer rows.Close()
	s.note("%s:", query)
	for more := true; more; more = rows.NextResultSet() {
		s.result(rows)
	}
	s.note("end: %T: %v", rows.Err(), rows.Err())
}

func (s *script) result(rows *sql.Rows) {
	types, err := rows.ColumnTypes()
	s.note("%d columns, %v", len(types), err)
	for _, c := range types {
		length, hasLength := c.Length()
		precision, scale, decimal := c.DecimalSize()
		nullable, known := c.Nullable()
		s.note("%s %s %v, length %d %v, decimal %d %d %v, nullable %v %v", c.Name(), c.DatabaseTypeName(), c.ScanType(),
			length, hasLength, precision, scale, decimal, nullable, known)
	}
	values := make([]any, len(types))
	into := make([]any, len(types))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		err := rows.Scan(into...)
		s.note("row %#v, %v", values, err)
	}
}

const conformDDL = `CREATE TABLE game.conform (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, big BIGINT UNSIGNED, small TINYINT,
	exact DECIMAL(10,3), near DOUBLE, name VARCHAR(40) UNIQUE, data BLOB, doc JSON, at DATETIME(3), stamp TIMESTAMP NULL, day DATE, span TIME, bits BIT(9))`

// steps that leave the connection usable.
func (s *script) run(ctx context.Context) {
	const columns = "INSERT INTO conform (big, small, exact, near, name, data, doc, at, stamp, day, span, bits) VALUES "
	s.exec(ctx, columns+`(18446744073709551615, -128, '1234567.891', 0.1, 'ann', x'00ff27', '{"gold": 7}', '2024-02-29 12:00:00.125', '2024-02-29 12:00:00', '2024-02-29', '-11:22:33', b'101')`)
	s.exec(ctx, columns+"(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", uint64(1<<63), int8(-1), "0.001", 2.5, "it's \\ \"bob\"", []byte{0, '\'', '\\', 255}, `[1, null]`,
		time.Date(2024, 7, 1, 8, 30, 0, 5e6, time.UTC), time.Date(2024, 7, 1, 8, 30, 0, 0, time.UTC), "2024-07-01", "01:02:03", []byte{1, 1})
	s.exec(ctx, "INSERT INTO conform (name) VALUES ('c'), (NULL)")
	s.exec(ctx, "INSERT INTO conform (name) VALUES (?)", nil)
	s.query(ctx, "SELECT * FROM conform ORDER BY id")
	s.query(ctx, "SELECT * FROM conform WHERE id < ? ORDER BY id", 4)
	s.query(ctx, "SELECT at, day FROM conform WHERE at < ?", time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC))
	s.query(ctx, "SELECT LAST_INSERT_ID(), NULL, 1/3, CAST(? AS CHAR)", "x")
	s.query(ctx, "SELECT id FROM conform WHERE id = 99")
	s.exec(ctx, "UPDATE conform SET small = 1 WHERE id <= ?", 2)
	s.exec(ctx, "DELETE FROM conform WHERE name = 'c'")
	s.exec(ctx, "INSERT INTO conform (name) VALUES ('ann')")
	s.exec(ctx, "INSERT INTO conform (name) VALUES (?)", "ann")
	s.exec(ctx, "INSERT INTO conform VALUES (")
	s.query(ctx, "SELECT ? FROM nowhere", 1)
	s.exec(ctx, "INSERT INTO conform (name) VALUES (?)", struct{}{})
	s.exec(ctx, "INSERT INTO conform (name) VALUES (?)")
	s.exec(ctx, "LOAD DATA LOCAL INFILE '/nowhere' INTO TABLE conform")
	s.query(ctx, "DO 1")
	s.query(ctx, "SELECT 1; SELECT 'two', 2; DO 0; SELECT 3 WHERE FALSE")
	s.exec(ctx, "UPDATE conform SET small = 2; INSERT INTO conform (name) VALUES ('d')")
	s.note("ping: %v", s.conn.PingContext(ctx))
	s.prepared(ctx)
	s.transactions(ctx)
}

func (s *script) prepared(ctx context.Context) {
	if stmt, err := s.conn.PrepareContext(ctx, "SELEKT ?"); err == nil {
		defer func() { s.note("no statement was prepared all the same: %v", stmt.Close()) }()
	} else {
		s.note("prepare: %T: %v", err, err)
	}
	stmt, err := s.conn.PrepareContext(ctx, "SELECT name FROM conform WHERE id = ?")
	if err != nil {
		s.note("prepare: %T: %v", err, err)
		return
	}
	defer stmt.Close()
	for id := range 4 {
		var name sql.NullString
		err := stmt.QueryRowContext(ctx, id).Scan(&name)
		s.note("prepared %d: %v, %v", id, name, err)
	}
	_, err = stmt.QueryContext(ctx) //nolint:rowserrcheck,sqlclosecheck // it fails
	s.note("without its argument: %T: %v", err, err)
}

func (s *script) transactions(ctx context.Context) {
	for _, opts := range []*sql.TxOptions{
		nil,
		{Isolation: sql.LevelReadCommitted},
		{Isolation: sql.LevelSerializable, ReadOnly: true},
		{Isolation: sql.LevelLinearizable},
	} {
		for _, commit := range []bool{true, false} {
			tx, err := s.conn.BeginTx(ctx, opts)
			if err != nil {
				s.note("begin %v: %T: %v", opts, err, err)
				continue
			}
			var isolation string
			err = tx.QueryRowContext(ctx, "SELECT @@tx_isolation").Scan(&isolation)
			s.note("isolation %s, %v", isolation, err)
			_, err = tx.ExecContext(ctx, "INSERT INTO conform (small) VALUES (42)")
			s.note("write: %T: %v", err, err)
			if commit {
				s.note("commit: %v", tx.Commit())
			}
			s.note("rollback: %v", tx.Rollback())
			s.query(ctx, "SELECT COUNT(*) FROM conform WHERE small = 42")
		}
	}
}

// One script gives the same on a connection of the driver alone and of the
// wrapper. interpolateParams is always said, since the router has another default
// for it. An error in answer to one of several statements is left out: it comes
// as a StatementError, as those before it stay.
func TestWrapperDoesWhatTheDriverDoes(t *testing.T) {
	for _, params := range []string{
		"?interpolateParams=false", "?interpolateParams=true", "?interpolateParams=false&multiStatements=true",
		"?interpolateParams=false&parseTime=true&loc=Europe%2FBerlin",
		"?interpolateParams=true&multiStatements=true&parseTime=true&clientFoundRows=true",
		"?interpolateParams=false&columnsWithAlias=true&collation=latin1_swedish_ci",
	} {
		t.Run(params, func(t *testing.T) {
			bare, wrapped := scriptsFor(t, server.DSN()+params)
			for _, s := range []*script{bare, wrapped} {
				lab.Exec(t, server.RootDSN(), "DROP TABLE IF EXISTS game.conform", conformDDL)
				s.run(t.Context())
			}
			if len(bare.notes) < 60 {
				t.Errorf("%d notes only", len(bare.notes))
			}
			for i, want := range bare.notes {
				if i >= len(wrapped.notes) || wrapped.notes[i] != want {
					t.Fatalf("step %d: the driver gives\n%s\nthe wrapper\n%s", i, want, slices.Concat(wrapped.notes, []string{"nothing"})[min(i, len(wrapped.notes))])
				}
			}
		})
	}
}

func scriptsFor(t *testing.T, dsn string) (bare, wrapped *script) {
	t.Helper()
	l, err := routerOf(t, dsn).Lease(t.Context(), on("server_1"), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Release)
	return &script{conn: bareConn(t, dsn)}, &script{conn: l.Conn()}
}

// What ends a connection. The end of a statement's context comes as the driver
// gives it. The rest differs on purpose: the driver says ErrBadConn or
// ErrInvalidConn, which do not tell how far a statement got, and for the first of
// which database/sql closes the connection under its holder.
func TestWrapperWhereTheConnectionEnds(t *testing.T) {
	steps := map[string]func(ctx context.Context, conn *sql.Conn) error{
		"cancelled": func(ctx context.Context, conn *sql.Conn) error {
			ctx, cancel := context.WithCancel(ctx)
			defer time.AfterFunc(100*time.Millisecond, cancel).Stop()
			return exec(ctx, conn, "DO SLEEP(20)")
		},
		"past its deadline": func(ctx context.Context, conn *sql.Conn) error {
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			return readAll(ctx, conn, "SELECT SLEEP(20)")
		},
		"cancelled before": func(ctx context.Context, conn *sql.Conn) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return exec(ctx, conn, "DO 1")
		},
		"in the midst of rows": func(ctx context.Context, conn *sql.Conn) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			rows, err := conn.QueryContext(ctx, "SELECT seq, REPEAT('x', 1000) FROM seq_1_to_100000")
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				cancel()
			}
			return rows.Err()
		},
	}
	for name, step := range steps {
		bare, wrapped := scriptsFor(t, server.DSN())
		want, got := step(t.Context(), bare.conn), step(t.Context(), wrapped.conn)
		if want == nil || fmt.Sprintf("%T %v", want, want) != fmt.Sprintf("%T %v", got, got) {
			t.Errorf("%s: the driver gives %T %v, the wrapper %T %v", name, want, want, got, got)
		}
	}

	bare, wrapped := scriptsFor(t, server.DSN())
	want, got := bare.killed(t), wrapped.killed(t)
	if !errors.Is(want, mysql.ErrInvalidConn) || !errors.Is(got, mysql.ErrInvalidConn) || !errors.Is(got, shardrouter.ErrConnLost) {
		t.Errorf("killed: the driver gives %v, the wrapper %v", want, got)
	}
	want, got = exec(t.Context(), bare.conn, "DO 1"), exec(t.Context(), wrapped.conn, "DO 1")
	if !errors.Is(want, driver.ErrBadConn) || shardrouter.ProgressOf(got) != shardrouter.NotSent || errors.Is(got, driver.ErrBadConn) {
		t.Errorf("after that: the driver gives %v, the wrapper %v", want, got)
	}
}

// killed has the server end the connection under a statement, and returns its
// error.
func (s *script) killed(t *testing.T) error {
	t.Helper()
	var id int
	if err := s.conn.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	db := lab.Open(t, server.RootDSN())
	ended := make(chan error, 1)
	go func() { ended <- exec(t.Context(), s.conn, "DO SLEEP(20)") }()
	lab.Eventually(t, 10*time.Second, "the statement runs", func() bool {
		var n int
		err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ? AND info LIKE '%SLEEP%'", id).Scan(&n)
		return err == nil && n == 1
	})
	lab.Exec(t, server.RootDSN(), fmt.Sprintf("KILL %d", id))
	return <-ended
}
