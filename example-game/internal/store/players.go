package store

import (
	"context"
	"database/sql"
	"errors"
)

// DB is what the statements run on: a *sql.Conn or a *sql.Tx.
type DB interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Player is one row of the table.
type Player struct {
	Name         string
	PasswordHash string
	Gold         int64
}

// Rank is one line of the leaderboard.
type Rank struct {
	Name string `json:"name"`
	Gold int64  `json:"gold"`
}

// Insert adds a player without gold. The error may be ErrNameTaken.
func Insert(ctx context.Context, db DB, name, passwordHash string) error {
	_, err := db.ExecContext(ctx, "INSERT INTO players (name, password_hash, gold) VALUES (?, ?, 0)", name, passwordHash)
	if isNumber(err, errDuplicateKey) {
		return ErrNameTaken
	}
	return err
}

// Find reads a player. The error may be ErrNoPlayer, also where there is no
// table yet.
func Find(ctx context.Context, db DB, name string) (Player, error) {
	p := Player{Name: name}
	err := db.QueryRowContext(ctx, "SELECT password_hash, gold FROM players WHERE name = ?", name).
		Scan(&p.PasswordHash, &p.Gold)
	if isMissing(err) {
		return Player{}, ErrNoPlayer
	}
	return p, err
}

// Dig gives the player one more piece of gold and returns how many that makes.
// It wants a transaction. The error may be ErrNoPlayer.
func Dig(ctx context.Context, tx DB, name string) (int64, error) {
	if err := add(ctx, tx, name, 1); err != nil {
		return 0, err
	}
	p, err := Find(ctx, tx, name)
	return p.Gold, err
}

// Transfer moves gold from one player to another and returns what the giver
// has left. It wants a transaction. The error may be ErrNoPlayer for the giver,
// ErrNoRecipient or ErrNotEnough.
func Transfer(ctx context.Context, tx DB, from, to string, amount int64) (int64, error) {
	has, err := lockBoth(ctx, tx, from, to)
	if err != nil {
		return 0, err
	}
	if has < amount {
		return 0, ErrNotEnough
	}
	return has - amount, errors.Join(add(ctx, tx, from, -amount), add(ctx, tx, to, amount))
}

// lockBoth locks both rows in the order of their names, so that two transfers
// in opposite directions cannot wait for each other. It returns the giver's
// gold.
func lockBoth(ctx context.Context, tx DB, from, to string) (gold int64, err error) {
	for _, name := range [...]string{min(from, to), max(from, to)} {
		has, lockErr := lock(ctx, tx, name)
		switch {
		case lockErr == nil && name == from:
			gold = has
		case errors.Is(lockErr, ErrNoPlayer) && name == to:
			err = ErrNoRecipient
		case lockErr != nil:
			return 0, lockErr
		}
	}
	return gold, err
}

func lock(ctx context.Context, tx DB, name string) (int64, error) {
	var gold int64
	err := tx.QueryRowContext(ctx, "SELECT gold FROM players WHERE name = ? FOR UPDATE", name).Scan(&gold)
	if isMissing(err) {
		return 0, ErrNoPlayer
	}
	return gold, err
}

func add(ctx context.Context, tx DB, name string, amount int64) error {
	res, err := tx.ExecContext(ctx, "UPDATE players SET gold = gold + ? WHERE name = ?", amount, name)
	if isMissing(err) {
		return ErrNoPlayer
	}
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return ErrNoPlayer
}

// Richest returns the players with the most gold, at most limit of them, and
// nobody where there is no table yet.
func Richest(ctx context.Context, db DB, limit int) ([]Rank, error) {
	ranks := []Rank{} // an empty list, never null
	rows, err := db.QueryContext(ctx, "SELECT name, gold FROM players ORDER BY gold DESC, name LIMIT ?", limit)
	if isMissing(err) {
		return ranks, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var r Rank
		if err := rows.Scan(&r.Name, &r.Gold); err != nil {
			return nil, err
		}
		ranks = append(ranks, r)
	}
	return ranks, rows.Err()
}
