package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/shardhop/shardhop/example-game/internal/jsonbody"
	"github.com/shardhop/shardhop/example-game/internal/problem"
	"github.com/shardhop/shardhop/healthcache"
)

// maxOrder bounds the body of a drain.
const maxOrder = 4 << 10

// order is the body of a PUT of a drain. The end is read by hand, since it has
// two forms.
type order struct {
	Reason string          `json:"reason"`
	TTL    json.RawMessage `json:"ttl"`
}

// ttl returns when the drain ends: 0 for never.
func (o *order) ttl() (time.Duration, error) {
	var text string
	switch err := json.Unmarshal(o.TTL, &text); {
	case len(o.TTL) == 0 || string(o.TTL) == "null":
		return 0, nil
	case err != nil: // a number of seconds
		text = string(o.TTL) + "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > 0 && d < time.Second {
		return 0, problem.New(http.StatusUnprocessableEntity, "bad_ttl",
			`The ttl is a duration of a second or more, as "10m" or as a number of seconds, or is left out`)
	}
	return d, nil
}

// readOrder reads the body of a drain. The error is the problem to answer with.
func readOrder(w http.ResponseWriter, r *http.Request) (reason string, ttl time.Duration, err error) {
	var o order
	r.Body = http.MaxBytesReader(w, r.Body, maxOrder)
	if err := jsonbody.Decode(r, &o); err != nil {
		return "", 0, err
	}
	if strings.TrimSpace(o.Reason) == "" {
		return "", 0, problem.New(http.StatusUnprocessableEntity, "bad_reason", "A drain needs a reason, for the next operator who wonders")
	}
	ttl, err = o.ttl()
	return o.Reason, ttl, err
}

// target is what a drain is of: a shard or, with an address, one of its nodes.
type target struct{ shard, node string }

func (t target) drain(ctx context.Context, health *healthcache.Cache, reason string, ttl time.Duration) error {
	if t.node != "" {
		return health.DrainNode(ctx, t.shard, t.node, reason, ttl)
	}
	return health.Drain(ctx, t.shard, reason, ttl)
}

func (t target) undrain(ctx context.Context, health *healthcache.Cache) error {
	if t.node != "" {
		return health.UndrainNode(ctx, t.shard, t.node)
	}
	return health.Undrain(ctx, t.shard)
}

func (a *api) drain(w http.ResponseWriter, r *http.Request) {
	t, ok := a.target(w, r)
	if !ok {
		return
	}
	reason, ttl, err := readOrder(w, r)
	if p, ok := errors.AsType[*problem.Problem](err); ok {
		p.Write(w, r)
		return
	}
	if err := t.drain(r.Context(), a.Router.Health(), reason, ttl); err != nil {
		a.notTaken(w, r, err)
		return
	}
	a.Logger.InfoContext(r.Context(), "drain ordered", "shard", t.shard, "node", t.node, "reason", reason, "ttl", ttl)
	w.WriteHeader(http.StatusNoContent)
}

func (a *api) undrain(w http.ResponseWriter, r *http.Request) {
	t, ok := a.target(w, r)
	if !ok {
		return
	}
	if err := t.undrain(r.Context(), a.Router.Health()); err != nil {
		a.notTaken(w, r, err)
		return
	}
	a.Logger.InfoContext(r.Context(), "drain ended", "shard", t.shard, "node", t.node)
	w.WriteHeader(http.StatusNoContent)
}

// target returns what the address names; if there is no such shard, it has
// answered.
func (a *api) target(w http.ResponseWriter, r *http.Request) (target, bool) {
	t := target{chi.URLParam(r, "shard"), chi.URLParam(r, "addr")}
	if _, ok := a.Router.GroupOf(t.shard); !ok {
		problem.New(http.StatusNotFound, "unknown_shard", "There is no such shard").Write(w, r)
		return target{}, false
	}
	return t, true
}

// notTaken answers for an order that was not carried out.
func (a *api) notTaken(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, healthcache.ErrUnknownNode) {
		problem.New(http.StatusNotFound, "unknown_node", "The shard has no such node, or no other").Write(w, r)
		return
	}
	a.Logger.WarnContext(r.Context(), "drain not written", "error", err)
	problem.New(http.StatusServiceUnavailable, "unavailable", "Redis does not answer: the order was not written").Write(w, r)
}
