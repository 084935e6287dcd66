package shardrouter

import (
	"context"
	"errors"
	"math"
	"net"
	"os"
	"sync/atomic"
	"syscall"
)

// wire is the network connection under one server connection. It knows what
// the driver's errors do not tell: how far things went since a moment, whether
// the connection is gone, and whether the server has hung up; and it lets no
// greeting through that would make the driver panic. The driver uses it from one
// goroutine at a time; cut and the getters may be called from any. A nil wire
// stands for a network whose dialer is not ours: everything counts as sent.
type wire struct {
	net.Conn
	raw syscall.RawConn // nil where there is none

	sent   atomic.Int64 // writes that went through whole
	reads  atomic.Int64 // reads that brought something
	failed atomic.Int64 // 1 + the reads there were when a write failed; 0: none did
	closed atomic.Bool
	late   atomic.Bool // a read met the driver's read timeout

	greeted  bool
	greeting []byte // what the driver has not taken of it yet
	thread   uint32 // the connection's number in it; set before the handshake ends

	look   func(fd uintptr) // sets peeked; made once, since hungUp is on every path
	peeked bool
}

func newWire(c net.Conn) *wire {
	w := &wire{Conn: c}
	if sc, ok := c.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			w.raw = raw
		}
	}
	var into [1]byte
	w.look = func(fd uintptr) { w.peeked = quiet(fd, into[:]) }
	return w
}

func (w *wire) Read(b []byte) (int, error) {
	if !w.greeted {
		w.greeted = true
		var err error
		if w.greeting, err = readGreeting(w.Conn); err != nil {
			return 0, err
		}
		w.thread = threadIn(w.greeting)
	}
	if len(w.greeting) > 0 {
		n := copy(b, w.greeting)
		w.greeting = w.greeting[n:]
		return n, nil
	}
	n, err := w.Conn.Read(b)
	if n > 0 {
		w.reads.Add(1)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.late.Store(true)
	}
	return n, err
}

func (w *wire) Write(b []byte) (int, error) {
	n, err := w.Conn.Write(b)
	if err != nil {
		w.failed.Store(1 + w.reads.Load())
		return n, err
	}
	w.sent.Add(1)
	return n, nil
}

func (w *wire) Close() error {
	w.closed.Store(true)
	return w.Conn.Close()
}

// SyscallConn lets the driver peek at the socket of an idle connection; it
// skips that check for a connection without this method.
func (w *wire) SyscallConn() (syscall.RawConn, error) {
	if w.raw == nil {
		return nil, syscall.EINVAL
	}
	return w.raw, nil
}

// isThread reports whether the greeting gave the connection the same number as the
// server gives it, of which a greeting has the lower half. Something that speaks
// MySQL between the two has numbers of its own.
func (w *wire) isThread(number uint64) bool {
	return w != nil && uint64(w.thread) == number&math.MaxUint32
}

// hungUp looks at the socket of a connection on which no answer is awaited: a
// server that ended it in the meantime does not get the next statement, and
// whatever else waits there answers nothing that was asked. Not for several
// goroutines at once.
func (w *wire) hungUp() bool {
	if w == nil || w.raw == nil {
		return false
	}
	return w.raw.Control(w.look) != nil || !w.peeked
}

// cut closes the socket under a running statement, which then fails as it
// would if the server had died. The error of Close is of no use: the
// connection is given up.
func (w *wire) cut() {
	if w != nil {
		_ = w.Close()
	}
}

// mark is a point in what went over a wire.
type mark struct{ sent, reads int64 }

// reach is how far things went on a wire since a mark.
type reach int

const (
	reachNotSent  reach = iota // the server lacks at least the end of what was to be sent
	reachSent                  // all of it left this side
	reachAnswered              // something came back
)

func (w *wire) mark() mark {
	if w == nil {
		return mark{}
	}
	return mark{w.sent.Load(), w.reads.Load()}
}

// since returns how far things went since m. A write that failed before
// anything was read leaves the server with the beginning of a command, which it
// does not run.
func (w *wire) since(m mark) reach {
	switch {
	case w == nil:
		return reachSent
	case w.failed.Load() == 1+m.reads, w.sent.Load() == m.sent:
		return reachNotSent
	case w.reads.Load() == m.reads:
		return reachSent
	}
	return reachAnswered
}

// sentSince reports whether all of what was to be sent since m may have
// reached the server.
func (w *wire) sentSince(m mark) bool { return w.since(m) != reachNotSent }

// gone reports whether this side has closed the connection.
func (w *wire) gone() bool { return w != nil && w.closed.Load() }

// wireSlot carries the wire and the limit of a connection from the functions
// that the driver calls back to the caller of Connect.
type wireSlot struct {
	wire  *wire
	limit int
}

type wireSlotKey struct{}

// dialWire is the DialFunc of every TCP and unix address.
func dialWire(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w := newWire(c)
	if slot, ok := ctx.Value(wireSlotKey{}).(*wireSlot); ok {
		slot.wire = w
	}
	return w, nil
}
