package middleware

import (
	"context"
	"log/slog"
	"net/http"
)

// run is what is known of one run of the handler when its answer is judged.
type run struct {
	// before is how often the handler had run before, most how often it may.
	before, most int
	// status is that of the answer, nothing of which has left.
	status int
	// lost: the connection of the last lease went, and no context did that.
	lost bool
	// onlyRead: whatever ran on the request's connections provably was a read.
	onlyRead bool
	// steered: the handler changed its route, or mounted another middleware.
	steered bool
	// changed: the session is not as it was.
	changed bool
	// left: something has reached the client, or its connection was changed.
	left bool
	// over: the client has left, or the request's time is up.
	over bool
}

// mayReplay reports whether the handler may run once more: only when it has
// failed for want of its connection, and nobody could tell from what is stored
// anywhere that it ran before.
func mayReplay(r run) bool {
	failed := r.status >= http.StatusInternalServerError && r.lost
	traceless := r.onlyRead && !r.steered && !r.changed
	return failed && traceless && !r.left && !r.over && r.before+1 < r.most
}

// isSafe reports whether r is of a kind that may run twice: a safe method as
// HTTP means it, and no body, which could be read only once.
func isSafe(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return r.ContentLength == 0
	}
	return false
}

// remember keeps what a second run of r would need; nil when there is none,
// whatever happens. A mount inside of another one leaves replays alone, since
// the other's connections are not its own.
func (m *mount) remember(s *seat, w http.ResponseWriter, r *http.Request) *original {
	if m.cfg.MaxRuns < 2 || m.changes == nil || s.outer != nil || !isSafe(r) {
		return nil
	}
	return newOriginal(w.Header(), r)
}

// run collects what is known of the run that a is the answer to.
func (a *answer) run(status int) run {
	s, ctx := a.seat, a.original.request.Context()
	r := run{
		before: a.before, most: s.mount.cfg.MaxRuns, status: status,
		lost: s.lostLease(), steered: s.isSteered(), left: a.left, over: ctx.Err() != nil,
	}
	if r.lost { // otherwise the rest does not count, and costs something
		r.onlyRead = s.mount.lender.OnlyRead(s.ctx)
		r.changed = s.mount.changes.Changed(ctx)
	}
	return r
}

// replay runs the handler again, if the answer that last holds back allows it
// and a connection can be had; otherwise the client gets that answer. Every run
// has a seat of its own, and the one before has ended with all that it left
// behind.
func (m *mount) replay(last *answer, next http.Handler) {
	last.seat.end()
	if !mayReplay(last.run(last.held.status)) {
		last.pass()
		return
	}
	s := last.seat.successor(last.original.request.Context())
	defer s.end()
	if _, err := s.acquire(s.ctx); err != nil {
		m.cfg.Logger.LogAttrs(s.ctx, slog.LevelWarn, "request not run again: no other connection", slog.Any("error", err))
		last.pass()
		return
	}
	m.reportReplay(last.original.request, last.seat.servedBy(), s.servedBy())
	last.original.restoreAnswer(last.base.Header())
	a := &answer{seat: s, base: last.base, original: last.original, before: last.before + 1}
	a.serve(next, last.original.again(s.ctx))
	if a.held != nil {
		m.replay(a, next)
	}
}

func (m *mount) reportReplay(r *http.Request, from, to string) {
	m.cfg.Logger.LogAttrs(r.Context(), slog.LevelInfo, "connection lost, request run again",
		slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.String("from", from), slog.String("to", to))
	tell(m.cfg.Observer.Replayed, from, to)
}

// changes is the part of a session store that replays need.
type changes interface {
	Changed(ctx context.Context) bool
}
