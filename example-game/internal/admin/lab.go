package admin

import (
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	"github.com/shardhop/shardhop/example-game/internal/problem"
)

var verbs = []string{"stop", "start", "freeze", "thaw"}

// node is the answer of the lab.
type node struct {
	Shard string `json:"shard"`
	Node  string `json:"node"`
}

// breakNode runs one verb on an embedded node.
func (a *api) breakNode(w http.ResponseWriter, r *http.Request) {
	t, ok := a.target(w, r)
	if !ok {
		return
	}
	verb := chi.URLParam(r, "verb")
	if !slices.Contains(verbs, verb) {
		problem.New(http.StatusNotFound, "unknown_verb", "A node can be told to stop, start, freeze or thaw").Write(w, r)
		return
	}
	if err := a.Lab.Do(t.shard, verb); err != nil {
		a.Logger.WarnContext(r.Context(), "lab failed", "shard", t.shard, "verb", verb, "error", err)
		problem.New(http.StatusConflict, "wrong_state", "The node cannot do that now: it is "+a.Lab.State(t.shard)).Write(w, r)
		return
	}
	a.Logger.InfoContext(r.Context(), "lab", "shard", t.shard, "verb", verb)
	reply(w, node{Shard: t.shard, Node: a.Lab.State(t.shard)})
}
