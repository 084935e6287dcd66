package shardrouter

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
)

// errBehind: a member of a cluster could not show in time that it has applied
// what the cluster has committed.
var errBehind = errors.New("the server has not caught up with its cluster")

const (
	// causalRead waits, before it reads, until the member has applied what the
	// cluster had committed when the statement came. It has to be a SELECT: DO
	// and SHOW do not wait. It leaves nothing behind on the connection.
	causalRead = "SET STATEMENT wsrep_sync_wait=1 FOR SELECT 1"
	// setCausal makes every read of the session do so, on servers that have no
	// SET STATEMENT.
	setCausal = "SET SESSION wsrep_sync_wait=1"
	// setBefore makes every transaction of the session wait, at its beginning,
	// until a member of a replication group has applied what the group had agreed
	// on by then.
	setBefore = "SET SESSION group_replication_consistency='BEFORE'"
)

// catchUp waits until the lease's server has applied what its cluster had
// committed when catchUp was called. A server of no cluster has nothing to wait
// for. After an error the server may be behind.
func (l *Lease) catchUp(ctx context.Context) error {
	began := l.pool.passages.Load().count.Load()
	if err := l.server.catchUp(ctx); err != nil {
		return err
	}
	// An older count than the one that stands there costs another wait only.
	l.pool.caughtUp.Store(began)
	return nil
}

func (c *serverConn) catchUp(ctx context.Context) (err error) {
	c.uses.begin(time.Now())
	defer c.after(&err)
	member, err := c.node.membership(ctx, c.mysqlConn)
	if err != nil {
		return err
	}
	switch member {
	case memberOfGalera:
		_, err = queryRow(ctx, c.mysqlConn, causalRead, 1)
		if hasNumber(err, erParseError) {
			err = c.causalSession(ctx)
		}
	case memberOfGroup:
		err = c.followGroup(ctx)
	}
	if _, answered := errors.AsType[*mysql.MySQLError](err); answered {
		return fmt.Errorf("%w: %w", errBehind, err)
	}
	return err
}

// followGroup catches up with a replication group by an empty transaction. The
// connection stays as that makes it until it comes back, and is closed then.
func (c *serverConn) followGroup(ctx context.Context) error {
	c.tainted = true
	for _, statement := range []string{setBefore, "START TRANSACTION READ ONLY", "COMMIT"} {
		if err := c.own(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// causalSession does without SET STATEMENT. The connection stays as it makes
// it until it comes back, and is closed then.
func (c *serverConn) causalSession(ctx context.Context) error {
	c.tainted = true
	if err := c.own(ctx, setCausal); err != nil {
		return err
	}
	_, err := queryRow(ctx, c.mysqlConn, "SELECT 1", 1)
	return err
}

// membership is by what the node is kept in step with others. Each new
// connection learns it; where none did, the node is asked, and one that does
// not understand the question is no member of anything.
func (n *node) membership(ctx context.Context, conn driver.QueryerContext) (membership, error) {
	if known := n.member.Load(); known != nil {
		return *known, nil
	}
	in, err := n.introduce(ctx, conn)
	if notUnderstood(err) {
		return memberOfNone, nil
	}
	return in.membership(), err
}

// passages counts the events by which the shards of a group may be behind each
// other's writes in the eyes of a session. Copies are behind for the blink of
// an eye, so this is only about sessions that pass from one shard to another.
// It is safe for use by several goroutines.
type passages struct {
	count atomic.Int64
	// owed is the count at which a lease last ended that may have written where
	// its session is not any more, or never was: on a detour, or on a shard that
	// sessions left meanwhile.
	owed atomic.Int64
}

// leave notes that a session goes on from p to another shard.
func (p *pool) leave() { p.left.Store(p.passages.Load().count.Add(1)) }

// settleUp notes at a lease's end what the other shards owe its session.
func (l *Lease) settleUp() {
	p := l.pool
	if l.wrote.Load() && (l.detour || p.left.Load() > l.began) {
		ps := p.passages.Load()
		ps.owed.Store(ps.count.Add(1))
	}
}

// behind reports whether the shard may be behind a write of one of its
// sessions on another shard of the group.
func (p *pool) behind() bool { return p.passages.Load().owed.Load() > p.caughtUp.Load() }
