package middleware

import (
	"bufio"
	"io"
	"mime"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/felixge/httpsnoop"

	"github.com/shardhop/shardhop/internal/httpanswer"
)

// answer watches what the handler does with the response in one run, for four
// reasons: the shard's name belongs into the header of whatever is sent first,
// an event stream or a hijacked socket lives too long to hold a connection, and
// an answer that only tells of a lost connection is held back for a replay.
type answer struct {
	seat     *seat
	base     http.ResponseWriter
	writer   http.ResponseWriter // what the handler gets
	original *original           // nil when the request must not run again
	before   int                 // runs of the handler before this one
	sent     atomic.Bool         // the header has left, or the socket is the handler's
	// left: something that is not the answer has reached the client, or the
	// connection to it was changed, so that no other run may begin.
	left     bool
	held     *held // nil unless the answer is held back
	returned bool
}

// serve runs the handler.
func (a *answer) serve(next http.Handler, r *http.Request) {
	a.seat.answer = a
	defer a.finish()
	a.writer = a.wrap()
	next.ServeHTTP(a.writer, r)
	a.returned = true
}

// wrap returns a writer with the optional interfaces of the base.
func (a *answer) wrap() http.ResponseWriter {
	return httpsnoop.Wrap(httpanswer.Controllable(a.base), httpsnoop.Hooks{
		WriteHeader:      a.writeHeader,
		Write:            a.write,
		WriteString:      a.writeString,
		ReadFrom:         a.readFrom,
		Flush:            a.flush,
		FlushError:       a.flushError,
		Hijack:           a.hijack,
		Push:             a.push,
		EnableFullDuplex: a.enableFullDuplex,
	})
}

// isBeneath reports whether w is the handler's writer, or wraps it and says so.
// One that hides it, as that of http.TimeoutHandler does, may be used while
// another goroutine writes the answer.
func (a *answer) isBeneath(w http.ResponseWriter) bool {
	for w != a.writer {
		wrapper, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = wrapper.Unwrap()
	}
	return true
}

// begin runs just before the header leaves, and sends on what was held back.
func (a *answer) begin() {
	if a.held != nil {
		a.pass()
		return
	}
	a.announce()
}

// announce runs just before the header leaves.
func (a *answer) announce() {
	if a.sent.Swap(true) {
		return
	}
	a.nameShard()
	if isEventStream(a.base.Header()) {
		a.seat.giveBack(remedyStream)
	}
}

// finish names the shard on an answer that the handler left to net/http, or to
// whoever recovers its panic. What was held back before a panic goes out.
func (a *answer) finish() {
	if a.held != nil {
		if !a.returned {
			a.pass()
		}
		return
	}
	if !a.sent.Swap(true) {
		a.nameShard()
	}
}

func (a *answer) nameShard() {
	name := a.seat.mount.cfg.ShardHeader
	if name == "" {
		return
	}
	if shard := a.seat.servedBy(); shard != "" {
		a.base.Header().Set(name, shard)
	}
}

func isEventStream(h http.Header) bool {
	ct := h.Get("Content-Type")
	if len(ct) < len("text/event-stream") {
		return false
	}
	mediaType, _, err := mime.ParseMediaType(ct)
	return err == nil && mediaType == "text/event-stream"
}

func (a *answer) writeHeader(next httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
	return func(status int) {
		switch {
		case httpanswer.IsInterim(status):
			a.left = true
		case a.hold(status):
			return
		default:
			a.begin()
		}
		next(status)
	}
}

func (a *answer) write(next httpsnoop.WriteFunc) httpsnoop.WriteFunc {
	return func(b []byte) (int, error) {
		if a.keep(len(b)) {
			a.held.body = append(a.held.body, b...)
			return len(b), nil
		}
		a.begin()
		return next(b)
	}
}

func (a *answer) writeString(next httpsnoop.WriteStringFunc) httpsnoop.WriteStringFunc {
	return func(s string) (int, error) {
		if a.keep(len(s)) {
			a.held.body = append(a.held.body, s...)
			return len(s), nil
		}
		a.begin()
		return next(s)
	}
}

func (a *answer) readFrom(next httpsnoop.ReadFromFunc) httpsnoop.ReadFromFunc {
	return func(src io.Reader) (int64, error) {
		a.begin()
		return next(src)
	}
}

func (a *answer) flush(next httpsnoop.FlushFunc) httpsnoop.FlushFunc {
	return func() {
		a.begin()
		next()
	}
}

func (a *answer) flushError(next httpsnoop.FlushErrorFunc) httpsnoop.FlushErrorFunc {
	return func() error {
		a.begin()
		return next()
	}
}

// hijack gives the connection back once the socket is the handler's.
func (a *answer) hijack(next httpsnoop.HijackFunc) httpsnoop.HijackFunc {
	return func() (net.Conn, *bufio.ReadWriter, error) {
		if a.held != nil {
			a.pass()
		}
		conn, rw, err := next()
		if err == nil {
			a.sent.Store(true)
			a.seat.giveBack(remedyHijacked)
		}
		return conn, rw, err
	}
}
