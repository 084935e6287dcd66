package sessionstore

import (
	"net/http"

	"github.com/shardhop/shardhop/internal/httpanswer"
)

// problem is the body of a 503: RFC 9457, and nothing internal.
const problem = `{"type":"about:blank","title":"Service Unavailable","status":503,"code":"session_unavailable"}` + "\n"

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
// that everybody is still logged in when Redis is back.
func (m *Manager) unavailable(w http.ResponseWriter, r *http.Request, err error) {
	// What fails because the client left says nothing about Redis.
	if r.Context().Err() == nil {
		m.logger.ErrorContext(r.Context(), "session unavailable", "error", err)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Retry-After", httpanswer.RetryAfter(m.retryAfter))
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte(problem))
}
