package middleware

import (
	"maps"
	"net/http"

	"github.com/felixge/httpsnoop"
)

// held is an answer of which nothing has left yet. Only one that could be
// followed by another run is held back: it has the status of a failure, and the
// connection is lost. Every other goes out as the handler writes it.
type held struct {
	status int
	header http.Header // as it was when the handler gave its status
	body   []byte
	// report tells of the refusal that the answer is, if it is one of
	// WriteError, once it goes out.
	report func()
}

// hold holds the answer back, if it may turn out not to be the last word, and
// reports whether it did. A second status is ignored, as net/http does.
func (a *answer) hold(status int) bool {
	if a.held == nil && a.mayHold(status) {
		a.held = &held{status: status, header: a.base.Header().Clone()}
	}
	return a.held != nil
}

// mayHold reports whether an answer of status would be held back.
func (a *answer) mayHold(status int) bool {
	return a.original != nil && !a.sent.Load() && !isEventStream(a.base.Header()) && mayReplay(a.run(status))
}

// keep reports whether n more bytes of the body are to be held back.
func (a *answer) keep(n int) bool {
	return a.held != nil && len(a.held.body)+n <= a.seat.mount.cfg.ReplayBuffer
}

// pass sends on what was held back; what follows goes the same way.
func (a *answer) pass() {
	h := a.held
	a.held = nil
	if h.report != nil {
		h.report()
	}
	a.announce()
	a.writeHeld(h)
	if len(h.body) > 0 {
		_, _ = a.base.Write(h.body) // a client that is gone is no trouble
	}
}

// writeHeld sends on a header. What the handler has set since comes too late for
// it, as with net/http, and may be a trailer.
func (a *answer) writeHeld(h *held) {
	header := a.base.Header()
	late := header.Clone()
	clear(header)
	maps.Copy(header, h.header)
	a.nameShard()
	a.base.WriteHeader(h.status)
	clear(header)
	maps.Copy(header, late)
}

// push and enableFullDuplex are steps that cannot be taken back.

func (a *answer) push(next httpsnoop.PushFunc) httpsnoop.PushFunc {
	return func(target string, opts *http.PushOptions) error {
		a.left = true
		return next(target, opts)
	}
}

func (a *answer) enableFullDuplex(next httpsnoop.EnableFullDuplexFunc) httpsnoop.EnableFullDuplexFunc {
	return func() error {
		a.left = true
		return next()
	}
}
