package scriptserver_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/shardhop/shardhop/internal/scriptserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServer(t *testing.T) {
	s := scriptserver.New(t)
	s.Answer("name", scriptserver.Rows([]string{"id", "name"}, []string{"1", "ann"}, []string{"2", ""}))
	s.Answer("refuse", scriptserver.Err(1317, "interrupted"))
	db, err := sql.Open("mysql", s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, args := range [][]any{nil, {7}} { // as text, and prepared
		query := "SELECT id, name FROM t"
		if args != nil {
			query += " WHERE n < ?"
		}
		var id, name string
		if err := db.QueryRowContext(t.Context(), query, args...).Scan(&id, &name); err != nil || id+name != "1ann" {
			t.Errorf("%s: got %q, %q, %v", query, id, name, err)
		}
		if _, err := db.ExecContext(t.Context(), "refuse "+query, args...); !hasNumber(err, 1317) {
			t.Errorf("got %v, want 1317", err)
		}
		if _, err := db.ExecContext(t.Context(), "anything else"); err != nil {
			t.Errorf("got %v, want OK", err)
		}
	}
	if n := s.Got("refuse"); n != 2 {
		t.Errorf("%d statements were noted, want 2", n)
	}
	s.Answer("hang up", scriptserver.HangUp())
	if _, err := db.ExecContext(t.Context(), "hang up"); !errors.Is(err, mysql.ErrInvalidConn) {
		t.Errorf("got %v, want the end of the connection", err)
	}
}

func hasNumber(err error, number uint16) bool {
	me, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && me.Number == number
}
