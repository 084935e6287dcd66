package embedded

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// State tells what a node does.
type State string

// The states of a node.
const (
	Up      State = "up"
	Stopped State = "stopped"
	Frozen  State = "frozen"
)

// node is one port of the cluster.
type node struct {
	name    string
	addr    string
	deliver func(*nodeConn) bool
	running sync.WaitGroup // accept loops, served connections and the readers of parked ones

	mu     sync.Mutex // taken by accept loops, the server's goroutines and the caller of a verb
	state  State
	ln     net.Listener
	conns  map[*nodeConn]struct{} // served now
	parked map[net.Conn]struct{}  // open and silent, while frozen
}

func newNode(name string, deliver func(*nodeConn) bool) (*node, error) {
	n := &node{
		name:    name,
		addr:    "127.0.0.1:0",
		deliver: deliver,
		state:   Stopped,
		conns:   map[*nodeConn]struct{}{},
		parked:  map[net.Conn]struct{}{},
	}
	if err := n.start(); err != nil {
		return nil, err
	}
	return n, nil
}

// start listens again on the port that the node had. It does nothing when the
// node is up.
func (n *node) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch n.state {
	case Up:
		return nil
	case Frozen:
		return fmt.Errorf("%w: %s is frozen, thaw it", ErrWrongState, n.name)
	}
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", n.addr)
	if err != nil {
		return fmt.Errorf("embedded: start %s: %w", n.name, err)
	}
	n.ln, n.addr, n.state = ln, ln.Addr().String(), Up
	n.running.Go(func() { n.acceptAll(ln) })
	return nil
}

// stop closes the port and every connection.
func (n *node) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state == Stopped {
		return
	}
	n.state = Stopped
	_ = n.ln.Close()
	for c := range n.conns {
		c.cut()
	}
	n.closeParkedLocked()
}

// freeze makes the node silent. It does nothing when the node is frozen.
func (n *node) freeze() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state == Stopped {
		return fmt.Errorf("%w: %s is stopped", ErrWrongState, n.name)
	}
	n.state = Frozen
	for c := range n.conns {
		c.freeze()
	}
	return nil
}

// thaw closes what was frozen and serves again. It does nothing when the node
// is up.
func (n *node) thaw() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state == Stopped {
		return fmt.Errorf("%w: %s is stopped", ErrWrongState, n.name)
	}
	n.state = Up
	n.closeParkedLocked()
	return nil
}

func (n *node) closeParkedLocked() {
	for c := range n.parked {
		_ = c.Close()
	}
	clear(n.parked)
}

func (n *node) current() State {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state
}

func (n *node) acceptAll(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		if nc := n.admit(c); nc != nil && !n.deliver(nc) {
			_ = nc.Close()
		}
	}
}

// admit decides what becomes of a new connection; nil means that the server
// does not get it.
func (n *node) admit(c net.Conn) *nodeConn {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch n.state {
	case Stopped:
		_ = c.Close()
		return nil
	case Frozen:
		n.parkLocked(c)
		return nil
	}
	nc := newNodeConn(c, n)
	n.conns[nc] = struct{}{}
	n.running.Add(1)
	return nc
}

// takeBack is called when the server is done with a connection.
func (n *node) takeBack(c *nodeConn) {
	defer n.running.Done()
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, c)
	if n.state == Frozen && c.frozen.Load() {
		n.parkLocked(c.Conn)
		return
	}
	_ = c.Conn.Close()
}

// parkLocked keeps a socket open and silent until the client or the node ends
// it. What the client sends is thrown away, so that its going is noticed.
func (n *node) parkLocked(c net.Conn) {
	_ = c.SetDeadline(time.Time{})
	n.parked[c] = struct{}{}
	n.running.Go(func() {
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.parked, c)
	})
}
