package embedded

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// writeTimeout bounds one write of an answer, so that a client that reads
// nothing cannot keep the gate.
const writeTimeout = 10 * time.Second

// nodeConn is the server's view of one client connection. It ends for the
// server when its node freezes, while the client's socket stays open.
type nodeConn struct {
	net.Conn
	node   *node
	frozen atomic.Bool
	ended  chan struct{} // closed when the server has no further use for it
	end    sync.Once
	close  sync.Once
}

func newNodeConn(c net.Conn, n *node) *nodeConn {
	return &nodeConn{Conn: c, node: n, ended: make(chan struct{})}
}

// Read gives the end of the stream once the connection is frozen.
func (c *nodeConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.frozen.Load() {
		return 0, io.EOF
	}
	return n, err
}

// Write swallows nothing: on a frozen connection it fails.
func (c *nodeConn) Write(p []byte) (int, error) {
	if c.frozen.Load() {
		return 0, io.ErrClosedPipe
	}
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// Close is the server's: it gives the socket back to the node, which closes it
// or, when frozen, keeps it open and silent.
func (c *nodeConn) Close() error {
	c.close.Do(func() {
		c.endNow()
		c.node.takeBack(c)
	})
	return nil
}

// freeze ends the connection for the server alone.
func (c *nodeConn) freeze() {
	c.frozen.Store(true)
	c.endNow()
	_ = c.SetDeadline(time.Unix(1, 0)) // wakes a blocked Read or Write
}

// cut ends the connection for both sides.
func (c *nodeConn) cut() {
	c.endNow()
	_ = c.Conn.Close()
}

func (c *nodeConn) endNow() { c.end.Do(func() { close(c.ended) }) }
