package shardrouter

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// freshFor is how long after a statement a read counts as following soon; see
// serverConn.free.
const freshFor = time.Millisecond

var (
	// errHungUp: the server ended the connection while nothing was under way.
	errHungUp = fmt.Errorf("the server has ended the connection: %w", io.EOF)
	// errGone: the connection was given up before.
	errGone = fmt.Errorf("the connection is closed: %w", net.ErrClosed)
)

// admit refuses a statement that must not be sent now, and remembers one that
// may leave something behind, on the connection or in the database.
func (c *serverConn) admit(ctx context.Context, query string) (traits, error) {
	t := c.node.texts.traitsOf(query)
	if err := c.mayRun(ctx, t); err != nil {
		return t, err
	}
	if t.residue {
		c.tainted = true
		c.foreignText = c.foreignText || t.foreign
	}
	if !t.reads && c.wrote != nil {
		c.wrote.Store(true)
	}
	return t, nil
}

// free refuses what would run outside of an ended transaction, or in the middle
// of an open result, for which the driver knows only an error that makes
// database/sql close the connection under the result and wait for it. What is
// said of a connection that this side has closed is no evidence of the server.
//
// A read that follows soon upon the last statement goes without the look at the
// socket, which is a call of the system: little is lost with it, and hardly a
// server ends a connection on which it has just answered.
func (c *serverConn) free(t traits) error {
	before := c.asked
	c.asked = time.Now()
	spared := t.reads && c.asked.Sub(before) < freshFor
	if c.rows == 0 && !spared && c.wire.hungUp() && !c.wire.gone() {
		c.wire.cut()
		c.note(errHungUp)
	}
	if c.rows == 0 && c.era.ended() {
		c.wire.cut() // what ran when it ended has been answered
	}
	switch {
	case c.wire.gone():
		c.lost.Store(true)
		c.ending.lose()
		return c.unrun(errGone)
	case c.tx.ended:
		return ErrTxEnded
	case c.rows > 0:
		return ErrRowsOpen
	}
	return nil
}

// begin counts in a statement that is about to be sent.
func (c *serverConn) begin(t traits) {
	c.tx.opaque = c.tx.open && t.commits
	if !c.tx.open || t.commits {
		c.tx.stayed = c.stays.Swap(true)
	}
	c.uses.begin(c.asked)
}
