package shardrouter

import (
	"time"

	"github.com/go-sql-driver/mysql"
)

// What the tests of the pure functions call.

func (c Config) WithDefaults() Config { return c.withDefaults() }
func (c Config) Validate() error      { return c.withDefaults().validate() }

func (c Config) MaxWaitingFor(s Shard) int { return c.maxWaiting(s) }

func ParseDSN(dsn DSN, dial, read, write time.Duration) ([]*mysql.Config, error) {
	return parseDSN(dsn, driverTimeouts{dial: dial, read: read, write: write})
}

type Occasion = occasion

var (
	OnConnect     = occasion{phase: phaseConnect}
	OnStatement   = occasion{phase: phaseStatement}
	OnReadOnlyTx  = occasion{phase: phaseStatement, readOnlyTx: true}
	OnCommit      = occasion{phase: phaseCommit}
	ConnectDone   = occasion{phase: phaseConnect, callerDone: true}
	StatementDone = occasion{phase: phaseStatement, callerDone: true}
	CommitDone    = occasion{phase: phaseCommit, callerDone: true}
)

func Classify(err error, at Occasion) Verdict { return classify(err, at) }
