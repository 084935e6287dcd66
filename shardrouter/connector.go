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
	// member is what it said when it was last asked; nil: it never was.
	member atomic.Pointer[membership]
	// leavesOpen is what it last said of its settings; see settingsThatCommit.
	leavesOpen atomic.Bool
	packets    packetLimit
	// multi: a connection takes several statements at once.
	multi bool
	// apart: parameters are always sent apart from their statement.
	apart bool
	texts *texts
}

func newNode(cfg *mysql.Config) (*node, error) {
	if cfg.Net == "tcp" || cfg.Net == "unix" {
		cfg.DialFunc = dialWire
	}
	n := &node{addr: cfg.Addr, multi: cfg.MultiStatements, apart: !cfg.InterpolateParams, texts: newTexts(cfg.MultiStatements)}
	n.packets.own = max(cfg.MaxAllowedPacket, 0)
	if err := cfg.Apply(mysql.BeforeConnect(n.packets.prepare)); err != nil {
		return nil, err
	}
	var err error
	n.dial, err = mysql.NewConnector(cfg)
	return n, err
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
	return &serverConn{mysqlConn: conn, wire: slot.wire, limit: slot.limit, era: e, node: n, lastUsed: time.Now()}, nil
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

// connector opens the connections of one shard's sql.DB: to the node that takes
// the writes of the whole fleet, and to no other.
type connector struct {
	pool  *pool
	nodes []*node
	// writer is nil while no node is known to be the one. With one node it does
	// not change.
	writer atomic.Pointer[writer]
}

var _ driver.Connector = (*connector)(nil)

func (c *connector) Driver() driver.Driver { return c.nodes[0].dial.Driver() }

// Connect dials the writer, and the next one if it is another before the
// connection stands.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := c.pool.bulkhead.ramping().dial(ctx); err != nil {
		return nil, err
	}
	for {
		w, current := c.writer.Load(), c.pool.era.Load()
		if w == nil {
			return nil, errNoWriter
		}
		conn, err := c.connectTo(ctx, w, current)
		if c.writer.Load() != w && ctx.Err() == nil {
			if err == nil {
				conn.wire.cut()
				_ = conn.Close() // it leads to a node that is not the one any more
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		c.pool.bulkhead.answers.Add(1)
		c.pool.evidence.Succeeded(c.pool.name)
		return conn, nil
	}
}

// connectTo opens a connection to the writer and ties it to the era, so that the
// era's end cuts it.
func (c *connector) connectTo(ctx context.Context, w *writer, e *era) (*serverConn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.pool.cfg.ConnectTimeout)
	defer cancel()
	conn, err := c.open(ctx, w, e)
	if err == nil && conn.outdated() {
		_ = conn.Close() // nothing was done on it
		conn, err = c.open(ctx, w, e)
	}
	if err != nil {
		return nil, err
	}
	conn.pool, conn.writer = c.pool, w
	conn.untie = context.AfterFunc(e.ctx, conn.endWithEra)
	return conn, nil
}

// open opens a connection to the writer, and makes sure that it leads there.
func (c *connector) open(ctx context.Context, w *writer, e *era) (*serverConn, error) {
	conn, err := w.node.connect(ctx, e)
	if err != nil {
		return nil, err
	}
	if err := c.meet(ctx, conn, w); err != nil {
		conn.wire.cut()
		return nil, &nodeError{w.node.addr, errors.Join(err, conn.Close())}
	}
	return conn, nil
}

// meet asks a fresh connection's server who it is. A node of several must be the
// recorded server, since an address may lead to another one than before, and
// take writes; one that stands alone is taken as it is.
func (c *connector) meet(ctx context.Context, conn *serverConn, w *writer) error {
	in, err := conn.node.introduce(ctx, conn)
	if _, answered := errors.AsType[*mysql.MySQLError](err); answered && len(c.nodes) == 1 {
		return nil
	}
	if err != nil {
		return err
	}
	if err := conn.closeTransactions(ctx, in.leavesOpen); err != nil {
		return err
	}
	conn.peer = in.peer
	if !conn.wire.isThread(in.peer.thread) {
		conn.peer.thread = 0 // by which nobody is to be ended
	}
	if len(c.nodes) == 1 {
		return nil
	}
	if w.server != "" && in.who.server != "" && w.server != in.who.server {
		return errOtherServer
	}
	role, _, err := in.role(ctx, conn)
	if err == nil && role != rolePrimary {
		err = errNotWritable
	}
	return err
}

// closeTransactions has a server that leaves transactions open commit every
// statement, and begin no transaction by itself.
func (c *serverConn) closeTransactions(ctx context.Context, leavesOpen bool) error {
	if !leavesOpen {
		return nil
	}
	return c.own(ctx, settingsThatCommit)
}

// named is the configured node that a record names; nil when there is none, and
// while that is only announced. An address that stands in Redis only is never
// dialled.
func (c *connector) named(w healthcache.Writer) *writer {
	if w.Announced() {
		return nil
	}
	for _, n := range c.nodes {
		if n.addr == w.Addr {
			return &writer{node: n, epoch: w.Epoch, server: w.Server}
		}
	}
	return nil
}

// unheard lists the nodes as they are before anybody heard of them.
func (c *connector) unheard() []healthcache.Node {
	nodes := make([]healthcache.Node, len(c.nodes))
	for i, n := range c.nodes {
		nodes[i].Addr = n.addr
	}
	return nodes
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
	if len(c.nodes) == 1 {
		c.writer.Store(&writer{node: c.nodes[0]})
	}
	return c, nil
}
