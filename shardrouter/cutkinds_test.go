package shardrouter_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"strings"

	"github.com/shardhop/shardhop/shardrouter"
)

// needle stands in what is cut, in the text of a statement or in the argument
// of a prepared one.
const needle = "needle-42"

// cutKind is a kind of statement that is cut where match goes over the wire.
type cutKind struct {
	name, match string
	run         func(ctx context.Context, s *session, cut func()) error
}

// tx reports whether the library runs the statement in a transaction of its own.
func (k cutKind) tx() bool { return strings.Contains(k.name, "`Tx") }

// execCut and readAllCut run one statement, which is cut.
func execCut(statement string) func(ctx context.Context, s *session, cut func()) error {
	return func(ctx context.Context, s *session, cut func()) error {
		cut()
		return exec(ctx, s.lease.Conn(), statement)
	}
}

func readAllCut(statement string) func(ctx context.Context, s *session, cut func()) error {
	return func(ctx context.Context, s *session, cut func()) error {
		cut()
		return readAll(ctx, s.lease.Conn(), statement)
	}
}

// cutKinds are cut each alone on a lease's connection.
var cutKinds = []cutKind{
	{"`Exec` of a write", needle, execCut("INSERT INTO tx VALUES ('" + needle + "')")},
	{"`Query` that writes", needle, readAllCut("INSERT INTO tx VALUES ('" + needle + "') RETURNING w")},
	{"`Query` that reads", needle, readAllCut("SELECT w FROM tx WHERE w = '" + needle + "'")},
	{"`SELECT` of a stored function", needle, readAllCut("SELECT write_down('" + needle + "')")},
	{"`CALL`", needle, execCut("CALL write_it('" + needle + "')")},
	{"prepared write", needle, func(ctx context.Context, s *session, cut func()) error {
		stmt, err := s.lease.Conn().PrepareContext(ctx, "INSERT INTO tx VALUES (?)")
		if err != nil {
			return err
		}
		defer stmt.Close()
		cut()
		_, err = stmt.ExecContext(ctx, needle)
		return err
	}},
	{"prepared read", needle, func(ctx context.Context, s *session, cut func()) error {
		stmt, err := s.lease.Conn().PrepareContext(ctx, "SELECT w FROM tx WHERE w = ?")
		if err != nil {
			return err
		}
		defer stmt.Close()
		cut()
		rows, err := stmt.QueryContext(ctx, needle)
		return readToEnd(rows, err)
	}},
	{"`Exec` in `BeginTx`", needle, func(ctx context.Context, s *session, cut func()) error {
		tx, err := s.lease.Conn().BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		cut()
		if err := execNeedle(ctx, tx); err != nil {
			return err
		}
		return tx.Commit()
	}},
	{"its COMMIT", "COMMIT", func(ctx context.Context, s *session, cut func()) error {
		tx, err := s.lease.Conn().BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if err := execNeedle(ctx, tx); err != nil {
			return err
		}
		cut()
		return tx.Commit()
	}},
	{"`Exec` in `Tx`", needle, func(ctx context.Context, s *session, cut func()) error {
		return shardrouter.Tx(ctx, s, withRow, func(ctx context.Context, tx *sql.Tx) error {
			cut()
			return execNeedle(ctx, tx)
		})
	}},
	{"`Query` in `Tx`", needle, func(ctx context.Context, s *session, cut func()) error {
		return shardrouter.Tx(ctx, s, withRow, func(ctx context.Context, tx *sql.Tx) error {
			cut()
			rows, err := tx.QueryContext(ctx, "INSERT INTO tx VALUES ('"+needle+"') RETURNING w")
			return readToEnd(rows, err)
		})
	}},
	{"prepared write in `Tx`", needle, func(ctx context.Context, s *session, cut func()) error {
		return shardrouter.Tx(ctx, s, withRow, func(ctx context.Context, tx *sql.Tx) error {
			stmt, err := tx.PrepareContext(ctx, "INSERT INTO tx VALUES (?)")
			if err != nil {
				return err
			}
			defer stmt.Close()
			cut()
			_, err = stmt.ExecContext(ctx, needle)
			return err
		})
	}},
	{"COMMIT of `Tx`", "COMMIT", func(ctx context.Context, s *session, cut func()) error {
		return shardrouter.Tx(ctx, s, withRow, cutBehind(cut))
	}},
	{"COMMIT of `Tx` without outcome row", "COMMIT", func(ctx context.Context, s *session, cut func()) error {
		return shardrouter.Tx(ctx, s, withoutRow, cutBehind(cut))
	}},
	{"COMMIT of `TxAnswer` with a key", "COMMIT", func(ctx context.Context, s *session, cut func()) error {
		opts := shardrouter.TxOptions{Key: rand.Text()}
		answer, err := shardrouter.TxAnswer(ctx, s, opts, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			return []byte("one"), cutBehind(cut)(ctx, tx)
		})
		if err == nil && string(answer.Body) != "one" {
			return fmt.Errorf("the answer is %q", answer.Body)
		}
		return err
	}},
}

func execNeedle(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO tx VALUES ('"+needle+"')")
	return err
}

// cutBehind is the body of a transaction that writes, and then is cut. A second
// run is not cut.
func cutBehind(cut func()) shardrouter.TxFunc {
	return func(ctx context.Context, tx *sql.Tx) error {
		err := execNeedle(ctx, tx)
		cut()
		return err
	}
}
