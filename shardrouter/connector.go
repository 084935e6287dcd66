package shardrouter

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/healthcache"
)

// errForeignDriver: what the driver returned lacks a method that the wrapper
// forwards; only a change of the driver itself can cause it.
var errForeignDriver = errors.New("shardrouter: the MySQL driver lacks an interface that database/sql uses")

// errProtocol: the driver could make nothing of what a server sent.
var errProtocol = errors.New("malformed answer of the server")

// errNotWritable: a node of several answers, but takes no writes.
var errNotWritable = errors.New("node is read-only")

// nodeError tells at which node an attempt failed.
type nodeError struct {
	addr string
	err  error
}

func (e *nodeError) Error() string { return e.addr + ": " + e.err.Error() }
func (e *nodeError) Unwrap() error { return e.err }

// node is one server of a shard.
type node struct {
	addr string
	dial driver.Connector
	// manners is the index of the introduction that the server understands.
	manners atomic.Int32
	// galera is what it said when it was last asked; nil: it never was.
	galera atomic.Pointer[bool]
	// multi: a connection takes several statements at once.
	multi bool
}

func newNode(cfg *mysql.Config) (*node, error) {
	if cfg.Net == "tcp" || cfg.Net == "unix" {
		cfg.DialFunc = dialWire
	}
	dial, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return &node{addr: cfg.Addr, dial: dial, multi: cfg.MultiStatements}, nil
}

// connect opens one server connection.
func (n *node) connect(ctx context.Context, e *era) (*serverConn, error) {
	slot := &wireSlot{}
	inner, err := n.handshake(context.WithValue(ctx, wireSlotKey{}, slot))
	if err != nil {
		slot.wire.cut()
		return nil, &nodeError{n.addr, err}
	}
	conn, ok := inner.(mysqlConn)
	if !ok {
		return nil, errors.Join(errForeignDriver, inner.Close())
	}
	return &serverConn{mysqlConn: conn, wire: slot.wire, era: e, node: n, lastUsed: time.Now()}, nil
}

// handshake has the driver connect. It trusts the lengths in what a server
// sends; a greeting is checked before it sees it (readGreeting), and what comes
// later, from something that only plays a MySQL server, must not end the
// process.
func (n *node) handshake(ctx context.Context) (conn driver.Conn, err error) {
	defer func() {
		if p := recover(); p != nil {
			conn, err = nil, fmt.Errorf("%w: %v", errProtocol, p)
		}
	}()
	return n.dial.Connect(ctx)
}

// connector opens the connections of one shard's sql.DB: to the node that took
// writes last time, or else to the first one that does.
type connector struct {
	pool   *pool
	nodes  []*node
	writer atomic.Int32 // index into nodes
}

var _ driver.Connector = (*connector)(nil)

func (c *connector) Driver() driver.Driver { return c.nodes[0].dial.Driver() }

// Connect dials the nodes in turn. Each gets its part of the time that ctx
// leaves, so that a silent one does not use up the time of the others.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := c.pool.bulkhead.ramping().dial(ctx); err != nil {
		return nil, err
	}
	current := c.pool.era.Load()
	first := int(c.writer.Load())
	var errs []error
	for i := range c.nodes {
		at := (first + i) % len(c.nodes)
		conn, err := c.connectTo(ctx, c.nodes[at], current, c.share(ctx, len(c.nodes)-i))
		if err == nil {
			c.writer.Store(int32(at))
			c.pool.bulkhead.answers.Add(1)
			c.pool.evidence.Succeeded(c.pool.name)
			return conn, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	if len(errs) == 1 {
		return nil, errs[0]
	}
	return nil, errors.Join(errs...)
}

// connectTo opens a connection to one node and ties it to the era, so that the
// era's end cuts it. A node of several must take writes.
func (c *connector) connectTo(ctx context.Context, n *node, e *era, limit time.Duration) (*serverConn, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := n.connect(ctx, e)
	if err != nil {
		return nil, err
	}
	if err := c.meet(ctx, conn); err != nil {
		conn.wire.cut()
		return nil, &nodeError{n.addr, errors.Join(err, conn.Close())}
	}
	conn.pool = c.pool
	conn.untie = context.AfterFunc(e.ctx, conn.wire.cut)
	return conn, nil
}

// meet asks a fresh connection's server who it is. A node of several must take
// writes; one that stands alone is taken as it is.
func (c *connector) meet(ctx context.Context, conn *serverConn) error {
	in, err := conn.node.introduce(ctx, conn)
	if _, answered := errors.AsType[*mysql.MySQLError](err); answered && len(c.nodes) == 1 {
		return nil
	}
	if err != nil {
		return err
	}
	conn.peer = in.peer
	if len(c.nodes) == 1 {
		return nil
	}
	role, _, err := in.role(ctx, conn)
	if err == nil && role != rolePrimary {
		err = errNotWritable
	}
	return err
}

// prefer has the next connections go to a node that a probe found to take
// writes, if the present one does not.
func (c *connector) prefer(found []healthcache.Node) {
	if found[c.writer.Load()].State == healthcache.Up {
		return
	}
	for i, n := range found {
		if n.State == healthcache.Up {
			c.writer.Store(int32(i))
			return
		}
	}
}

// unheard lists the nodes as they are before anybody heard of them.
func (c *connector) unheard() []healthcache.Node {
	nodes := make([]healthcache.Node, len(c.nodes))
	for i, n := range c.nodes {
		nodes[i].Addr = n.addr
	}
	return nodes
}

// share is the time that one of the nodes left may take.
func (c *connector) share(ctx context.Context, left int) time.Duration {
	limit := c.pool.cfg.ConnectTimeout
	deadline, ok := ctx.Deadline()
	if !ok {
		return limit
	}
	return min(limit, time.Until(deadline)/time.Duration(left))
}

// nodeOf finds the address in the error of an attempt; empty when it names none.
func nodeOf(err error) string {
	var ne *nodeError
	if errors.As(err, &ne) {
		return ne.addr
	}
	return ""
}

func newConnector(p *pool, cfgs []*mysql.Config) (*connector, error) {
	c := &connector{pool: p}
	for _, cfg := range cfgs {
		n, err := newNode(cfg)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", cfg.Addr, err)
		}
		c.nodes = append(c.nodes, n)
	}
	return c, nil
}
