// Package web holds what browsers are sent: two pages, their scripts and their
// style, all inside the binary. The pages carry no inline script or style, so
// that the content policy can forbid both.
package web

import (
	"bytes"
	"embed"
	"html/template"
	"io/fs"
	"net/http"
	"strings"

	"github.com/shardhop/shardhop/example-game/internal/problem"
)

//go:embed assets
var assets embed.FS

//go:embed pages
var pages embed.FS

// policy lets a page load what this server sends, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// SecureHeaders sets on every answer what keeps browsers careful.
func SecureHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY") // for browsers that do not know frame-ancestors
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

// Assets serves scripts, style and icon under /assets/, and no listing of them.
func Assets() http.Handler {
	files := http.FileServerFS(assets)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, err := fs.Stat(assets, strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil || file.IsDir() {
			problem.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-cache") // embedded files have no date to ask for
		files.ServeHTTP(w, r)
	})
}

// Game serves the page on which one plays. Players choose among realms where
// there are several.
func Game(realms []string) http.HandlerFunc {
	return page("game.html", http.StatusOK, struct{ Realms []string }{realms})
}

// Admin serves the operators' page, with a status of its own where the page
// has to ask for a token first.
func Admin(status int) http.HandlerFunc { return page("admin.html", status, nil) }

// page renders once; what is sent does not change.
func page(name string, status int, data any) http.HandlerFunc {
	var body bytes.Buffer
	if err := template.Must(template.ParseFS(pages, "pages/"+name)).Execute(&body, data); err != nil {
		panic("web: " + err.Error()) // a mistake in the template, seen at the first start
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache")
		w.WriteHeader(status)
		_, _ = w.Write(body.Bytes()) // a client that is gone is no trouble
	}
}
