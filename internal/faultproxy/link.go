package faultproxy

import (
	"errors"
	"io"
	"net"
	"sync"
)

// bufferSize is how much of one direction is moved at once.
const bufferSize = 32 << 10

// link is one client's connection and the connection to the upstream that
// belongs to it.
type link struct {
	proxy  *Proxy
	client *net.TCPConn
	done   chan struct{} // closed when the link is cut, reset or closed

	// answers is held by the requests' goroutine while a fault is under way,
	// so that no answer slips through between two of its steps.
	answers sync.Mutex

	mu       sync.Mutex   // guards what follows; taken by both directions and by the proxy
	upstream *net.TCPConn // nil before the dial
	ended    bool         // done is closed
	lost     bool         // bytes were swallowed; nothing can be forwarded any more
	forsaken bool         // the client is gone, and the upstream is not to know
	awaited  *trigger     // acts on the next answer
}

func newLink(p *Proxy, client *net.TCPConn) *link {
	return &link{proxy: p, client: client, done: make(chan struct{})}
}

// ignore reads what the client sends until it goes away.
func (l *link) ignore() { _, _ = io.Copy(io.Discard, l.client) }

// serve connects to the upstream and forwards until both directions have
// ended.
func (l *link) serve() {
	if !l.awaitForward(Mode.bytes) {
		return
	}
	upstream, err := l.proxy.dial()
	if err != nil {
		l.reset()
		return
	}
	if !l.attach(upstream) {
		return
	}
	var answers sync.WaitGroup
	answers.Go(func() {
		l.pump(l.client, upstream, func(chunk []byte) bool { return l.limited(Upstream, chunk, l.answer) })
	})
	var sent history
	request := func(chunk []byte) bool { return l.request(&sent, chunk) }
	l.pump(upstream, l.client, func(chunk []byte) bool { return l.limited(Client, chunk, request) })
	answers.Wait()
}

// attach gives the link its upstream, which it closes instead when the link
// has been ended meanwhile.
func (l *link) attach(upstream *net.TCPConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = upstream.Close()
		return false
	}
	l.upstream = upstream
	return true
}

// pump moves one direction until it ends. pass returns false when the link is
// over.
func (l *link) pump(to, from *net.TCPConn, pass func(chunk []byte) bool) {
	buf := make([]byte, bufferSize)
	for {
		n, err := from.Read(buf)
		if n > 0 && !pass(buf[:n]) {
			return
		}
		if err != nil {
			l.passEnd(to, err)
			return
		}
	}
}

// passEnd tells one side that the other has closed: half when that side
// closed in an orderly way, by a reset otherwise.
func (l *link) passEnd(to *net.TCPConn, err error) {
	if l.isForsaken() {
		<-l.done
		return
	}
	if !l.awaitForward(Mode.end) {
		return
	}
	if !errors.Is(err, io.EOF) || to.CloseWrite() != nil {
		l.reset()
	}
}

// request passes on what the client sent, and acts where a trigger wants it.
func (l *link) request(sent *history, chunk []byte) bool {
	trig := l.proxy.triggered(*sent, chunk)
	sent.add(chunk)
	if trig == nil {
		return l.forward(l.upstream, chunk)
	}
	switch trig.when {
	case AfterForward:
		l.answers.Lock()
		defer l.answers.Unlock()
		passed := l.forward(l.upstream, chunk)
		trig.fire(l)
		return passed
	case AfterReply:
		l.mu.Lock()
		l.awaited = trig
		l.mu.Unlock()
	default:
		trig.fire(l)
	}
	return l.forward(l.upstream, chunk)
}

// answer passes on what the upstream sent.
func (l *link) answer(chunk []byte) bool {
	l.answers.Lock()
	l.mu.Lock()
	trig := l.awaited
	l.awaited = nil
	l.mu.Unlock()
	l.answers.Unlock()
	if trig != nil {
		trig.fire(l)
	}
	return l.forward(l.client, chunk)
}

// forward gives bytes the fate that the mode wants. It returns false when the
// link is over.
func (l *link) forward(to *net.TCPConn, chunk []byte) bool {
	for {
		mode, changed := l.proxy.state()
		switch {
		case l.isLost():
			return true
		case mode.bytes() == swallow:
			l.lose()
			return true
		case mode.bytes() == wait:
			if !l.awaitChange(changed) {
				return false
			}
		default:
			if _, err := to.Write(chunk); err != nil {
				l.reset()
				return false
			}
			return true
		}
	}
}

// awaitForward waits while the mode's fate is to wait. It returns false when
// the link is over.
func (l *link) awaitForward(fateOf func(Mode) fate) bool {
	for {
		mode, changed := l.proxy.state()
		if fateOf(mode) != wait {
			return true
		}
		if !l.awaitChange(changed) {
			return false
		}
	}
}

func (l *link) awaitChange(changed <-chan struct{}) bool {
	select {
	case <-changed:
		return true
	case <-l.done:
		return false
	}
}

func (l *link) isLost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

func (l *link) isForsaken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.forsaken
}

// forsake resets the client's connection and leaves the upstream's open.
func (l *link) forsake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forsaken, l.lost = true, true
	reset(l.client)
}

func (l *link) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = true
}

// reset ends both connections with a TCP reset.
func (l *link) reset() { l.end(reset, reset) }

// cut resets the client's connection, and closes the upstream's in an orderly
// way: what was sent on it still arrives.
func (l *link) cut() { l.end(reset, closeConn) }

// close ends both connections in an orderly way.
func (l *link) close() { l.end(closeConn, closeConn) }

func (l *link) end(client, upstream func(*net.TCPConn)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	close(l.done)
	client(l.client)
	if l.upstream != nil {
		upstream(l.upstream)
	}
}

func closeConn(conn *net.TCPConn) { _ = conn.Close() }

func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}
