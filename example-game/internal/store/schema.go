package store

import "context"

// createPlayers has no secondary key: the embedded MySQL is slow with them.
// The name is compared byte by byte, so that no two shards can disagree about
// what a duplicate is.
const createPlayers = `CREATE TABLE IF NOT EXISTS players (
	name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
	password_hash VARCHAR(255) NOT NULL,
	gold BIGINT NOT NULL DEFAULT 0,
	created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
)`

// EnsureSchema makes the table of players if it is missing. An account that
// may not create tables is enough where the table is there.
func EnsureSchema(ctx context.Context, db DB) error {
	_, err := db.ExecContext(ctx, "SELECT name FROM players LIMIT 0")
	if !isNumber(err, errNoSuchTable) {
		return err
	}
	_, err = db.ExecContext(ctx, createPlayers)
	return err
}
