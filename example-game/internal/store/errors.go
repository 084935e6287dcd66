package store

import (
	"database/sql"
	"errors"

	"github.com/go-sql-driver/mysql"
)

// What can come of the statements besides success. Match with errors.Is.
var (
	// ErrNoPlayer: this shard has no player of that name.
	ErrNoPlayer = errors.New("store: no such player")
	// ErrNoRecipient: this shard has nobody of the name that should get gold.
	ErrNoRecipient = errors.New("store: no such recipient")
	// ErrNameTaken: this shard has a player of that name already.
	ErrNameTaken = errors.New("store: name taken")
	// ErrNotEnough: the player has less gold than that.
	ErrNotEnough = errors.New("store: not enough gold")
)

// MySQL's error numbers that mean something here.
const (
	errDuplicateKey = 1062
	errNoSuchTable  = 1146
)

func isNumber(err error, number uint16) bool {
	var my *mysql.MySQLError
	return errors.As(err, &my) && my.Number == number
}

// isMissing reports that a row is not there, or its table.
func isMissing(err error) bool {
	return errors.Is(err, sql.ErrNoRows) || isNumber(err, errNoSuchTable)
}
