package shardrouter

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"time"

	"github.com/shardhop/shardhop/healthcache"
)

const (
	// purgesPerRetention is how often rows are purged while one is kept, so
	// that none is kept for much longer than it has to be.
	purgesPerRetention = 24
	minPurgeInterval   = time.Second
	// purgeChunk is how many rows one statement looks at, and deletes at most.
	purgeChunk = 500
	// purgePause is the shortest rest between two chunks; a slow server gets
	// as much rest as it had work.
	purgePause = 20 * time.Millisecond
)

// purger deletes the outcome rows of one shard that are older than the
// retention. It goes through the table by its primary key, in chunks of short
// statements: what is old is found without a lock, and deleted by its key, so
// that no transaction waits for it. The keys are spread evenly, so a pass that
// begins anywhere and is cut short does its part.
//
// It has a goroutine of its own, which the router starts and stops.
type purger struct {
	router *Router
	pool   *pool
}

// purgeKey is the key in Redis of the instance whose turn it is.
func purgeKey(shard string) string { return "db:purge:" + shard }

func (g *purger) interval() time.Duration {
	return max(g.router.cfg.OutcomeRetention/purgesPerRetention, minPurgeInterval)
}

// run purges until ctx ends.
func (g *purger) run(ctx context.Context) {
	for sleep(ctx, g.interval()/2+mathrand.N(g.interval())) {
		if g.isOurTurn(ctx) {
			if err := g.pass(ctx); err != nil && ctx.Err() == nil {
				g.router.cfg.Logger.Debug("purge of outcome rows cut short", "shard", g.pool.name, "error", err)
			}
		}
	}
}

// turn is how long one pass has the table to itself in the fleet.
func (g *purger) turn() time.Duration { return g.interval() / 2 }

// isOurTurn takes the shard's turn, of which the fleet has one at a time. Without
// Redis every instance takes its own.
func (g *purger) isOurTurn(ctx context.Context) bool {
	rdb := g.router.cfg.Redis
	if rdb == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, g.interval())
	defer cancel()
	took, err := takeTurn(ctx, rdb, purgeKey(g.pool.name), g.router.cfg.Instance, g.turn())
	return err == nil && took
}

// pass goes once through the table, from a random key to its end and on from
// its beginning, for its turn at most.
func (g *purger) pass(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, g.turn())
	defer cancel()
	start := make([]byte, sha256.Size)
	_, _ = rand.Read(start) // never fails
	after, wrapped := start, false
	for {
		began := time.Now()
		seen, err := g.chunk(ctx, after)
		switch {
		case err != nil:
			return err
		case wrapped && (len(seen) < purgeChunk || string(seen[len(seen)-1]) >= string(start)):
			return nil
		case len(seen) < purgeChunk:
			after, wrapped = nil, true
		default:
			after = seen[len(seen)-1]
		}
		if !sleep(ctx, max(purgePause, time.Since(began))) {
			return ctx.Err()
		}
	}
}

// errNotUp: the purge can wait.
var errNotUp = errors.New("the shard is not up")

// chunk looks at the rows that follow a key, and deletes the old ones. It
// returns the keys that it saw.
func (g *purger) chunk(ctx context.Context, after []byte) (seen [][]byte, err error) {
	shard := g.pool.name
	if v := g.router.health.View(shard); v.State != healthcache.Up || drained(v) || g.pool.outcomes.name == "" {
		return nil, errNotUp
	}
	err = g.router.one(ctx, shard, func(ctx context.Context, _ string, conn *sql.Conn) error {
		var old []string
		seen, old, err = g.look(ctx, conn, after)
		if err != nil || len(old) == 0 {
			return err
		}
		// The key of a row that others have purged since may be in use again.
		_, err = conn.ExecContext(ctx, fmt.Sprintf("DELETE FROM %s WHERE id IN (%s) AND %s",
			g.pool.outcomes.name, strings.Join(old, ", "), g.isOld()))
		return err
	})
	return seen, err
}

// isOld is what holds of a row that may go.
func (g *purger) isOld() string {
	return fmt.Sprintf("created < UNIX_TIMESTAMP() - %d", int64(g.router.cfg.OutcomeRetention.Seconds()))
}

// look reads a chunk of keys, and returns those of old rows as literals besides.
func (g *purger) look(ctx context.Context, conn *sql.Conn, after []byte) (seen [][]byte, old []string, err error) {
	rows, err := conn.QueryContext(ctx, fmt.Sprintf(
		"SELECT id, %s FROM %s WHERE id > x'%x' ORDER BY id LIMIT %d", g.isOld(), g.pool.outcomes.name, after, purgeChunk))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id []byte
		var isOld bool
		if err := rows.Scan(&id, &isOld); err != nil {
			return nil, nil, err
		}
		seen = append(seen, id)
		if isOld {
			old = append(old, fmt.Sprintf("x'%x'", id))
		}
	}
	return seen, old, rows.Err()
}
