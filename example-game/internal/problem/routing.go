package problem

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// Routing makes r answer HEAD wherever it answers GET, and with problems where
// it has no handler.
func Routing(r chi.Router) {
	r.Use(middleware.GetHead)
	r.NotFound(NotFound)
	r.MethodNotAllowed(methodNotAllowed)
}

// NotFound answers that there is nothing at the address.
func NotFound(w http.ResponseWriter, r *http.Request) {
	New(http.StatusNotFound, "not_found", "There is nothing here").Write(w, r)
}

// methodNotAllowed names the methods that the address takes; chi tells them to
// its own handler only.
func methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	routes := chi.RouteContext(r.Context()).Routes
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		if !routes.Match(chi.NewRouteContext(), method, r.URL.Path) {
			continue
		}
		if allowed = append(allowed, method); method == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	New(http.StatusMethodNotAllowed, "method_not_allowed", "This address takes another method").Write(w, r)
}
