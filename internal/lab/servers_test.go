package lab_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/internal/lab"
)

func TestMariaDBKeepsItsDataAcrossEveryEnd(t *testing.T) {
	s := lab.MariaDB(t)
	lab.Exec(t, s.DSN(), "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
	addr := s.Addr()

	s.Kill()
	if s.PID() != 0 {
		t.Errorf("PID after Kill = %d, want 0", s.PID())
	}
	s.Start()
	lab.Exec(t, s.DSN(), "INSERT INTO t VALUES (2)")
	s.Restart()

	if got, err := rows(t, s.DSN()); err != nil || got != 2 {
		t.Errorf("rows = %d, %v, want 2", got, err)
	}
	if s.Addr() != addr {
		t.Errorf("address moved from %s to %s", addr, s.Addr())
	}
}

func TestMariaDBReadOnlyBindsTheAppAccount(t *testing.T) {
	s := lab.MariaDB(t, lab.WithArgs("--max-connections=17"))
	lab.Exec(t, s.RootDSN(), "CREATE TABLE t (id INT PRIMARY KEY)", "SET GLOBAL read_only=1", "INSERT INTO t VALUES (1)")

	db := lab.Open(t, s.DSN())
	_, err := db.Exec("INSERT INTO t VALUES (2)")
	if refusal := new(mysql.MySQLError); !errors.As(err, &refusal) || refusal.Number != 1290 {
		t.Errorf("insert on a read-only server: %v, want error 1290", err)
	}
	var limit int
	if err := db.QueryRow("SELECT @@max_connections").Scan(&limit); err != nil || limit != 17 {
		t.Errorf("max_connections = %d, %v, want the 17 of WithArgs", limit, err)
	}
}

func TestMariaDBFreezeAndThaw(t *testing.T) {
	s := lab.MariaDB(t)
	db := lab.Open(t, s.DSN())
	s.Freeze()
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if err := db.PingContext(ctx); err == nil {
		t.Error("a frozen server answered")
	}
	s.Thaw()
	if err := db.Ping(); err != nil {
		t.Errorf("after the thaw: %v", err)
	}
	s.Freeze()
	s.Stop() // thaws first
	if err := db.Ping(); err == nil {
		t.Error("a stopped server answered")
	}
}

func TestRedisLives(t *testing.T) {
	ctx := context.Background()
	s := lab.Redis(t, lab.WithArgs("--appendonly", "yes"))
	c := s.Client()
	if want := "redis://" + s.Addr(); s.URL() != want {
		t.Errorf("URL = %s, want %s", s.URL(), want)
	}
	if err := c.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Freeze()
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if err := c.Get(short, "k").Err(); err == nil {
		t.Error("a frozen server answered")
	}
	s.Thaw()
	s.Restart()
	if got := c.Get(ctx, "k").Val(); got != "v" {
		t.Errorf("after a restart k = %q, want v", got)
	}
	s.Kill()
	if _, err := net.Dial("tcp", s.Addr()); err == nil {
		t.Error("a killed server answered")
	}
}

// rows counts the rows of t.
func rows(t *testing.T, dsn string) (int, error) {
	t.Helper()
	db, err := sql.Open("mysql", dsn+"?readTimeout=2s")
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }()
	var n int
	err = db.QueryRow("SELECT COUNT(*) FROM t").Scan(&n)
	return n, err
}
