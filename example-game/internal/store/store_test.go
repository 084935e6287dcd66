package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/shardhop/shardhop/example-game/internal/embedded"
	"github.com/shardhop/shardhop/example-game/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) *sql.DB {
	t.Helper()
	c, err := embedded.NewCluster(embedded.Config{Nodes: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	db, err := sql.Open("mysql", c.DSN("a"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// inTx runs fn in a transaction, and commits it if there was no error.
func inTx(t *testing.T, db *sql.DB, fn func(ctx context.Context, tx *sql.Tx) error) error {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := fn(t.Context(), tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func dig(t *testing.T, db *sql.DB, name string) (gold int64, err error) {
	t.Helper()
	err = inTx(t, db, func(ctx context.Context, tx *sql.Tx) (err error) {
		gold, err = store.Dig(ctx, tx, name)
		return err
	})
	return gold, err
}

func transfer(t *testing.T, db *sql.DB, from, to string, amount int64) (left int64, err error) {
	t.Helper()
	err = inTx(t, db, func(ctx context.Context, tx *sql.Tx) (err error) {
		left, err = store.Transfer(ctx, tx, from, to, amount)
		return err
	})
	return left, err
}

func TestWithoutATableThereIsNobody(t *testing.T) {
	db := open(t)
	if _, err := store.Find(t.Context(), db, "ann"); !errors.Is(err, store.ErrNoPlayer) {
		t.Errorf("Find: %v", err)
	}
	if _, err := dig(t, db, "ann"); !errors.Is(err, store.ErrNoPlayer) {
		t.Errorf("Dig: %v", err)
	}
	if _, err := transfer(t, db, "ann", "bob", 1); !errors.Is(err, store.ErrNoPlayer) {
		t.Errorf("Transfer: %v", err)
	}
	if ranks, err := store.Richest(t.Context(), db, 10); err != nil || len(ranks) != 0 {
		t.Errorf("Richest: %v, %v", ranks, err)
	}
}

func TestPlayers(t *testing.T) {
	db := open(t)
	for range 2 { // the second time the table is there
		if err := store.EnsureSchema(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bob", "ann", "Ann"} {
		if err := store.Insert(t.Context(), db, name, "hash of "+name); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if err := store.Insert(t.Context(), db, "ann", "another"); !errors.Is(err, store.ErrNameTaken) {
		t.Errorf("a second ann: %v", err)
	}
	for want := int64(1); want <= 5; want++ {
		if gold, err := dig(t, db, "ann"); err != nil || gold != want {
			t.Fatalf("Dig: %d, %v, want %d", gold, err, want)
		}
	}
	if p, err := store.Find(t.Context(), db, "ann"); err != nil || p != (store.Player{Name: "ann", PasswordHash: "hash of ann", Gold: 5}) {
		t.Errorf("Find: %+v, %v", p, err)
	}
	for _, tc := range []struct {
		from, to string
		amount   int64
		left     int64
		err      error
		reason   string
	}{
		{"ann", "bob", 2, 3, nil, "the giver's name comes first"},
		{"bob", "ann", 1, 1, nil, "the giver's name comes second"},
		{"ann", "bob", 5, 0, store.ErrNotEnough, "more than there is"},
		{"ann", "zoe", 1, 0, store.ErrNoRecipient, "nobody to give to, later in the alphabet"},
		{"bob", "abe", 1, 0, store.ErrNoRecipient, "nobody to give to, earlier"},
		{"zoe", "ann", 1, 0, store.ErrNoPlayer, "nobody to give"},
		{"abe", "zoe", 1, 0, store.ErrNoPlayer, "neither is there"},
		{"zoe", "abe", 1, 0, store.ErrNoPlayer, "neither is there, the other way round"},
	} {
		left, err := transfer(t, db, tc.from, tc.to, tc.amount)
		if left != tc.left || !errors.Is(err, tc.err) {
			t.Errorf("%s: %d, %v, want %d, %v", tc.reason, left, err, tc.left, tc.err)
		}
	}
	ranks, err := store.Richest(t.Context(), db, 2)
	if want := "[{ann 4} {bob 1}]"; err != nil || fmt.Sprint(ranks) != want {
		t.Errorf("Richest: %v, %v, want %s", ranks, err, want)
	}
}
