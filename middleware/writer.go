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

// answer watches what the handler does with the response, for three reasons:
// the shard's name belongs into the header of whatever is sent first, and an
// event stream or a hijacked socket lives too long to hold a connection.
type answer struct {
	seat *seat
	base http.ResponseWriter
	sent atomic.Bool // the header has left, or the socket is the handler's
}

// wrap returns a writer with the optional interfaces of the base.
func (a *answer) wrap() http.ResponseWriter {
	return httpsnoop.Wrap(httpanswer.Controllable(a.base), httpsnoop.Hooks{
		WriteHeader: a.writeHeader,
		Write:       a.write,
		WriteString: a.writeString,
		ReadFrom:    a.readFrom,
		Flush:       a.flush,
		FlushError:  a.flushError,
		Hijack:      a.hijack,
	})
}

// begin runs just before the header leaves.
func (a *answer) begin() {
	if a.sent.Swap(true) {
		return
	}
	a.nameShard()
	if isEventStream(a.base.Header()) {
		a.seat.giveBack(remedyStream)
	}
}

// finish names the shard on an answer that the handler left to net/http, or to
// whoever recovers its panic.
func (a *answer) finish() {
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
		if !httpanswer.IsInterim(status) {
			a.begin()
		}
		next(status)
	}
}

func (a *answer) write(next httpsnoop.WriteFunc) httpsnoop.WriteFunc {
	return func(b []byte) (int, error) {
		a.begin()
		return next(b)
	}
}

func (a *answer) writeString(next httpsnoop.WriteStringFunc) httpsnoop.WriteStringFunc {
	return func(s string) (int, error) {
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
		conn, rw, err := next()
		if err == nil {
			a.sent.Store(true)
			a.seat.giveBack(remedyHijacked)
		}
		return conn, rw, err
	}
}
