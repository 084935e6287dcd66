package embedded

import (
	"net"
	"sync"
)

// fanIn is a net.Listener that yields the connections of all nodes. The nodes
// deliver into it; the server accepts from it.
type fanIn struct {
	conns  chan *nodeConn
	closed chan struct{}
	once   sync.Once
}

func newFanIn() *fanIn {
	return &fanIn{conns: make(chan *nodeConn), closed: make(chan struct{})}
}

// deliver hands c to the server; false means that the server is gone.
func (f *fanIn) deliver(c *nodeConn) bool {
	select {
	case f.conns <- c:
		return true
	case <-f.closed:
		return false
	}
}

// Accept waits for the next connection of any node.
func (f *fanIn) Accept() (net.Conn, error) {
	select {
	case c := <-f.conns:
		return c, nil
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (f *fanIn) Close() error {
	f.once.Do(func() { close(f.closed) })
	return nil
}

// Addr has no meaning for several ports; the server only prints it.
func (f *fanIn) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
