package game

import (
	"net/http"
	"runtime/debug"

	"github.com/shardhop/shardhop/example-game/internal/problem"
	"github.com/shardhop/shardhop/example-game/internal/web"
)

// maxBody bounds what a request may send; the largest form is far smaller.
const maxBody = 16 << 10

// secure puts around every request what does not depend on who sends it.
func (g *Game) secure(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	crossOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem.New(http.StatusForbidden, "cross_origin", "This request comes from another site").Write(w, r)
	}))
	return web.SecureHeaders(g.strictTransport(g.recovered(crossOrigin.Handler(limitBody(next)))))
}

func limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

func (g *Game) strictTransport(next http.Handler) http.Handler {
	if !g.cfg.CookieSecure {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		next.ServeHTTP(w, r)
	})
}

// recovered answers a request whose handler panicked. It stands outside the
// session, so that a half-done session is not saved.
func (g *Game) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so, too
				panic(v)
			}
			g.log.ErrorContext(r.Context(), "handler panicked", "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
			problem.New(http.StatusInternalServerError, "internal", "Something went wrong on our side").Write(w, r)
		}()
		next.ServeHTTP(w, r)
	})
}
