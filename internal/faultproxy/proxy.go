package faultproxy

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/lab"
)

// dialTimeout bounds a dial of the upstream.
const dialTimeout = 5 * time.Second

// Proxy is a TCP proxy in front of one upstream. Its methods are safe for use
// by several goroutines.
type Proxy struct {
	t      testing.TB
	addr   string
	ctx    context.Context // of dials; ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // every goroutine of the proxy

	mu       sync.Mutex // guards what follows; taken by tests, the accept loop and all links
	upstream string
	mode     Mode
	changed  chan struct{} // closed at the next change of mode
	listener net.Listener  // nil while the port is closed
	links    map[*link]struct{}
	armed    []*trigger
	limit    *limit // nil for none
	accepted int
	dialed   int
	closed   bool
}

// New starts a proxy in mode Pass in front of upstream, a host:port. It is
// closed when t ends.
func New(t testing.TB, upstream string) *Proxy {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{
		t:        t,
		addr:     lab.FreeAddr(t),
		upstream: upstream,
		ctx:      ctx,
		cancel:   cancel,
		changed:  make(chan struct{}),
		links:    make(map[*link]struct{}),
	}
	p.mu.Lock()
	err := p.listenLocked()
	p.mu.Unlock()
	if err != nil {
		cancel()
		t.Fatalf("faultproxy: %v", err)
	}
	t.Cleanup(p.Close)
	return p
}

// Addr returns the host:port that the proxy listens on. It stays the same in
// all modes.
func (p *Proxy) Addr() string { return p.addr }

// Accepted returns the number of connections accepted since the start.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Dialed returns the number of connections made to the upstream since the
// start.
func (p *Proxy) Dialed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dialed
}

// Open returns the number of connections that are open now.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Mode returns the present mode.
func (p *Proxy) Mode() Mode {
	mode, _ := p.state()
	return mode
}

// SetMode changes the mode. When it returns, the port is open or closed as the
// mode says, and everything sent from then on has the fate of the mode.
func (p *Proxy) SetMode(m Mode) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.mode = m
	close(p.changed)
	p.changed = make(chan struct{})
	if !m.listens() {
		p.closePortLocked()
	} else if err := p.listenLocked(); err != nil {
		p.t.Errorf("faultproxy: mode %v: %v", m, err)
	}
	if m == Cut {
		for l := range p.links {
			l.reset()
		}
	}
}

// Redirect has connections that are made from now on lead to another upstream.
// Those that are open stay.
func (p *Proxy) Redirect(upstream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = upstream
}

// Close ends all connections, closes the port and waits for every goroutine of
// the proxy. It is idempotent.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.cancel()
	p.closePortLocked()
	for l := range p.links {
		l.close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// state returns the mode and a channel that is closed when it changes.
func (p *Proxy) state() (Mode, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode, p.changed
}

// listenLocked opens the port if it is closed.
func (p *Proxy) listenLocked() error {
	if p.listener != nil {
		return nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(p.ctx, "tcp", p.addr)
	if err != nil {
		return err
	}
	p.listener = listener
	p.wg.Go(func() { p.acceptAll(listener) })
	return nil
}

func (p *Proxy) closePortLocked() {
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
}

// acceptAll runs until its listener is closed.
func (p *Proxy) acceptAll(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			p.t.Errorf("faultproxy: accept: %v", err)
			return
		}
		p.admit(conn.(*net.TCPConn))
	}
}

// admit decides what becomes of a new connection. One that was accepted while
// the port was being closed is reset and not counted.
func (p *Proxy) admit(client *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !p.mode.listens() {
		reset(client)
		return
	}
	p.accepted++
	if p.mode == AcceptThenClose {
		_ = client.Close()
		return
	}
	l := newLink(p, client)
	p.links[l] = struct{}{}
	serve := l.serve
	if p.mode.mutes() {
		serve = l.ignore
	}
	p.wg.Go(func() {
		defer p.forget(l)
		serve()
	})
}

// forget closes a link that has come to its end.
func (p *Proxy) forget(l *link) {
	l.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// dial connects to the upstream.
func (p *Proxy) dial() (*net.TCPConn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	p.mu.Lock()
	upstream := p.upstream
	p.mu.Unlock()
	conn, err := dialer.DialContext(p.ctx, "tcp", upstream)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialed++
	return conn.(*net.TCPConn), nil
}
