package shardrouter

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
)

// wire is the network connection under one server connection. It knows two
// things that the driver's errors do not tell: whether anything was sent since
// a moment, and whether the connection is gone; and it lets no greeting through
// that would make the driver panic. The driver uses it from one
// goroutine at a time; cut and the getters may be called from any. A nil wire
// stands for a network whose dialer is not ours: everything counts as sent.
type wire struct {
	net.Conn
	sent   atomic.Int64 // writes that put at least one byte on the wire
	closed atomic.Bool

	greeted  bool
	greeting []byte // what the driver has not taken of it yet
}

func (w *wire) Read(b []byte) (int, error) {
	if !w.greeted {
		w.greeted = true
		var err error
		if w.greeting, err = readGreeting(w.Conn); err != nil {
			return 0, err
		}
	}
	if len(w.greeting) > 0 {
		n := copy(b, w.greeting)
		w.greeting = w.greeting[n:]
		return n, nil
	}
	return w.Conn.Read(b)
}

func (w *wire) Write(b []byte) (int, error) {
	n, err := w.Conn.Write(b)
	if n > 0 {
		w.sent.Add(1)
	}
	return n, err
}

func (w *wire) Close() error {
	w.closed.Store(true)
	return w.Conn.Close()
}

// SyscallConn lets the driver peek at the socket of an idle connection; it
// skips that check for a connection without this method.
func (w *wire) SyscallConn() (syscall.RawConn, error) {
	sc, ok := w.Conn.(syscall.Conn)
	if !ok {
		return nil, syscall.EINVAL
	}
	return sc.SyscallConn()
}

// cut closes the socket under a running statement, which then fails as it
// would if the server had died. The error of Close is of no use: the
// connection is given up.
func (w *wire) cut() {
	if w != nil {
		_ = w.Close()
	}
}

// mark returns a point in the stream of writes, for sentSince.
func (w *wire) mark() int64 {
	if w == nil {
		return 0
	}
	return w.sent.Load()
}

// sentSince reports whether anything may have been sent after mark.
func (w *wire) sentSince(mark int64) bool {
	return w == nil || w.sent.Load() != mark
}

// gone reports whether this side has closed the connection.
func (w *wire) gone() bool { return w != nil && w.closed.Load() }

// wireSlot carries the wire of a dial from the DialFunc, which the driver
// calls, back to the caller of Connect.
type wireSlot struct{ wire *wire }

type wireSlotKey struct{}

// dialWire is the DialFunc of every TCP and unix address.
func dialWire(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: c}
	if slot, ok := ctx.Value(wireSlotKey{}).(*wireSlot); ok {
		slot.wire = w
	}
	return w, nil
}
