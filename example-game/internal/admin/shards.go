package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/shardhop/shardhop/example-game/internal/jsonbody"
	"github.com/shardhop/shardhop/example-game/internal/problem"
	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/shardrouter"
)

// maxOrder bounds the body of a drain.
const maxOrder = 4 << 10

// shard is one element of GET /shards.
type shard struct {
	Shard     string             `json:"shard"`
	Group     string             `json:"group"`
	State     string             `json:"state"`
	Since     time.Time          `json:"since,omitzero"`
	CheckedAt time.Time          `json:"checked_at,omitzero"`
	Reason    string             `json:"reason,omitempty"`
	Alarm     string             `json:"alarm,omitempty"`
	Writer    string             `json:"writer"` // address of the node that takes the writes
	RTT       int64              `json:"rtt_us,omitempty"`
	Nodes     []healthcache.Node `json:"nodes,omitempty"`
	// Copies names the shards that are proved to hold the same rows. A player
	// who is rotated to another one starts on other rows.
	Copies      []string `json:"copies"`
	Drained     bool     `json:"drained"`
	DrainReason string   `json:"drain_reason,omitempty"`
	// Node is what the embedded node does; empty for a real server.
	Node   string `json:"node,omitempty"`
	Pool   pool   `json:"pool"`
	Counts counts `json:"counts"`
}

type pool struct {
	MaxConns int `json:"max_conns"`
	InUse    int `json:"in_use"`
	Idle     int `json:"idle"`
	Waiting  int `json:"waiting"`
}

type counts struct {
	Leases      uint64 `json:"leases"`
	Failures    uint64 `json:"failures"`
	Busy        uint64 `json:"busy"`
	RotatedAway uint64 `json:"rotated_away"`
	Reassigned  uint64 `json:"reassigned"`
	Leaks       uint64 `json:"leaks"`
}

// newShard puts together what the pool and the health know.
func newShard(s shardrouter.Stats, v healthcache.View, node string) shard {
	state := string(v.State)
	if v.State == healthcache.Unknown {
		state = "unknown"
	}
	return shard{
		Shard: s.Shard, Group: s.Group,
		State: state, Since: v.Since, CheckedAt: v.CheckedAt, Reason: v.Reason, Alarm: v.Alarm, Writer: s.Writer, RTT: v.RTT, Nodes: v.Nodes, Copies: s.Copies,
		Drained: v.Drained, DrainReason: v.DrainReason, Node: node,
		Pool: pool{s.MaxConns, s.InUse, s.Idle, s.Waiting},
		Counts: counts{
			Leases: s.Leases, Failures: s.Failures, Busy: s.Busy,
			RotatedAway: s.RotatedAway, Reassigned: s.Reassigned, Leaks: s.Leaks,
		},
	}
}

func (a *api) listShards(w http.ResponseWriter, _ *http.Request) {
	shards := []shard{}
	for _, s := range a.Router.Stats() {
		node := ""
		if a.Lab != nil {
			node = a.Lab.State(s.Shard)
		}
		shards = append(shards, newShard(s, a.Router.Health().View(s.Shard), node))
	}
	reply(w, shards)
}

// order is the body of PUT /shards/{shard}/drain. The end is read by hand,
// since it has two forms.
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

func (a *api) drain(w http.ResponseWriter, r *http.Request) {
	name, ok := a.known(w, r)
	if !ok {
		return
	}
	reason, ttl, err := readOrder(w, r)
	if p, ok := errors.AsType[*problem.Problem](err); ok {
		p.Write(w, r)
		return
	}
	if err := a.Router.Health().Drain(r.Context(), name, reason, ttl); err != nil {
		a.redisFailed(w, r, err)
		return
	}
	a.Logger.InfoContext(r.Context(), "drain ordered", "shard", name, "reason", reason, "ttl", ttl)
	w.WriteHeader(http.StatusNoContent)
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

func (a *api) undrain(w http.ResponseWriter, r *http.Request) {
	name, ok := a.known(w, r)
	if !ok {
		return
	}
	if err := a.Router.Health().Undrain(r.Context(), name); err != nil {
		a.redisFailed(w, r, err)
		return
	}
	a.Logger.InfoContext(r.Context(), "drain ended", "shard", name)
	w.WriteHeader(http.StatusNoContent)
}

// known returns the shard of the address; if there is none, it has answered.
func (a *api) known(w http.ResponseWriter, r *http.Request) (string, bool) {
	name := chi.URLParam(r, "shard")
	if _, ok := a.Router.GroupOf(name); !ok {
		problem.New(http.StatusNotFound, "unknown_shard", "There is no such shard").Write(w, r)
		return "", false
	}
	return name, true
}

func (a *api) redisFailed(w http.ResponseWriter, r *http.Request, err error) {
	a.Logger.WarnContext(r.Context(), "drain not written", "error", err)
	problem.New(http.StatusServiceUnavailable, "unavailable", "Redis does not answer: the order was not written").Write(w, r)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that is gone is no trouble
}
