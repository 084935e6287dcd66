package admin

import (
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/shardhop/shardhop/example-game/internal/problem"
	"github.com/shardhop/shardhop/healthcache"
)

func (a *api) drainNode(w http.ResponseWriter, r *http.Request) {
	name, ok := a.known(w, r)
	if !ok {
		return
	}
	reason, ttl, err := readOrder(w, r)
	if p, ok := errors.AsType[*problem.Problem](err); ok {
		p.Write(w, r)
		return
	}
	addr := chi.URLParam(r, "addr")
	if err := a.Router.Health().DrainNode(r.Context(), name, addr, reason, ttl); err != nil {
		a.nodeFailed(w, r, err)
		return
	}
	a.Logger.InfoContext(r.Context(), "drain of a node ordered", "shard", name, "node", addr, "reason", reason, "ttl", ttl)
	w.WriteHeader(http.StatusNoContent)
}

func (a *api) undrainNode(w http.ResponseWriter, r *http.Request) {
	name, ok := a.known(w, r)
	if !ok {
		return
	}
	addr := chi.URLParam(r, "addr")
	if err := a.Router.Health().UndrainNode(r.Context(), name, addr); err != nil {
		a.nodeFailed(w, r, err)
		return
	}
	a.Logger.InfoContext(r.Context(), "drain of a node ended", "shard", name, "node", addr)
	w.WriteHeader(http.StatusNoContent)
}

// nodeFailed answers for an order that was not taken.
func (a *api) nodeFailed(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, healthcache.ErrUnknownNode) {
		problem.New(http.StatusNotFound, "unknown_node", "The shard has no such node, or no other").Write(w, r)
		return
	}
	a.redisFailed(w, r, err)
}
