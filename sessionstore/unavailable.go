package sessionstore

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/shardhop/shardhop/internal/httpanswer"
)

// The bodies of the answers: RFC 9457, and nothing internal.
const (
	problemStart = `{"type":"about:blank","title":"Service Unavailable","status":503,"code":`
	notLoaded    = problemStart + `"session_unavailable"}` + "\n"
	notSaved     = problemStart + `"session_not_saved"}` + "\n"
	unstorable   = `{"type":"about:blank","title":"Internal Server Error","status":500,"code":"session_not_saved"}` + "\n"
)

// fail answers in the handler's place. The headers that described the
// handler's answer would spoil this one.
func (m *Manager) fail(w http.ResponseWriter, r *http.Request, err error) {
	for _, name := range []string{
		"Accept-Ranges", "Cache-Control", "Content-Disposition", "Content-Encoding",
		"Content-Length", "Content-Range", "Content-Type", "Etag", "Expires",
		"Last-Modified", "Location", "Set-Cookie", "Trailer",
	} {
		w.Header().Del(name)
	}
	m.ErrorFunc(w, r, err)
}

// unavailable is the ErrorFunc of a new manager. The cookie stays as it is, so
// that everybody is still logged in when Redis is back. A client is told to come
// again if its request was refused before the handler ran, or changes nothing
// by its method: what the handler of another did elsewhere may be done.
func (m *Manager) unavailable(w http.ResponseWriter, r *http.Request, err error) {
	m.logger.Log(r.Context(), levelOf(r.Context(), err), "session unavailable", "error", err)
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	status, body, again := http.StatusServiceUnavailable, notLoaded, true
	switch {
	case errors.Is(err, ErrValue):
		status, body, again = http.StatusInternalServerError, unstorable, false
	case errors.Is(err, ErrNotSaved):
		body, again = notSaved, isSafe(r.Method)
	}
	if again {
		w.Header().Set("Retry-After", httpanswer.RetryAfter(m.retryAfter))
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

// isSafe reports whether requests of a method change nothing (RFC 9110, 9.2.1).
func isSafe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// levelOf is how loudly err is logged. What fails because the client left says
// nothing about Redis, and that calls are refused is logged when it begins.
func levelOf(ctx context.Context, err error) slog.Level {
	if ctx.Err() != nil || errors.Is(err, ErrUnavailable) {
		return slog.LevelDebug
	}
	return slog.LevelError
}

// loadNothing returns a context with an empty session, in the place of the one
// that could not be loaded because of cause.
func (m *Manager) loadNothing(ctx context.Context, cause error) (context.Context, error) {
	m.logger.Log(ctx, levelOf(ctx, cause), "request served without its session", "error", cause)
	return m.Load(m.store.withScope(ctx, &scope{missing: cause}), "")
}

// Degraded reports whether the request of ctx is served without the session
// that its cookie names, since Redis failed and Config.Optional allows it.
func (m *Manager) Degraded(ctx context.Context) bool {
	sc := m.store.scope(ctx)
	return sc != nil && sc.missing != nil
}
