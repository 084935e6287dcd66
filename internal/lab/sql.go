package lab

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// The accounts and the database that every server has.
const (
	database     = "game"
	appUser      = "app"
	appPassword  = "app-secret"
	rootUser     = "root"
	rootPassword = "root-secret"
)

// execTimeout bounds one statement of Exec. It is long enough for a Galera
// cluster that has just lost a member.
const execTimeout = 30 * time.Second

func appDSN(addr string) string  { return dsn(appUser, appPassword, addr) }
func rootDSN(addr string) string { return dsn(rootUser, rootPassword, addr) }

func dsn(user, password, addr string) string {
	return fmt.Sprintf("%s:%s@tcp(%s)/%s", user, password, addr, database)
}

// Exec runs statements one after the other on one connection of dsn, and ends
// the test when one of them fails.
func Exec(t testing.TB, dsn string, stmts ...string) {
	t.Helper()
	db, err := open(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, stmt := range stmts {
		ctx, cancel := context.WithTimeout(context.Background(), execTimeout)
		_, err := db.ExecContext(ctx, stmt)
		cancel()
		if err != nil {
			t.Fatalf("%s: %v", stmt, err)
		}
	}
}

// Open returns a pool for dsn that is closed when the test ends.
func Open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// open returns a pool of one connection whose driver keeps its complaints
// about lost connections to itself.
func open(dsn string) (*sql.DB, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db, nil
}

// queryOnce makes one handshake and one query.
func queryOnce(dsn string) error { return scanOnce(dsn, "SELECT 1", new(int)) }

// scanOnce makes one handshake and one query of one row, and scans the row.
func scanOnce(dsn, query string, dest ...any) error {
	db, err := open(dsn)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	return db.QueryRowContext(ctx, query).Scan(dest...)
}
