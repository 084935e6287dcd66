package game

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/shardhop/shardhop/example-game/internal/problem"
	"github.com/shardhop/shardhop/example-game/internal/web"
)

// action is a handler that leaves its error to the one place that answers it.
type action func(w http.ResponseWriter, r *http.Request) error

func (g *Game) routes() http.Handler {
	r := chi.NewRouter()
	problem.Routing(r)

	r.Get("/", web.Game(g.realms()))
	r.Get("/assets/*", web.Assets().ServeHTTP)
	r.Get("/healthz", healthz)
	r.Get("/readyz", g.do(g.readyz))

	r.Group(func(r chi.Router) {
		r.Use(g.hop.Handler)
		r.Post("/api/register", g.do(g.register))
		r.Post("/api/login", g.do(g.login))
		r.Post("/api/logout", g.do(g.logout))
		r.Get("/api/me", g.do(g.me))
		r.Post("/api/dig", g.do(g.dig))
		r.Post("/api/transfer", g.do(g.transfer))
		r.Get("/api/leaderboard", g.do(g.leaderboard))
		r.Get("/api/events", g.do(g.events))
	})
	return r
}

// do turns an action into a handler.
func (g *Game) do(a action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := a(w, r); err != nil {
			g.fail(w, r, err)
		}
	}
}
