package admin

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"

	"github.com/shardhop/shardhop/example-game/internal/problem"
	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/shardrouter"
)

// shard is one element of GET /shards.
type shard struct {
	Shard       string             `json:"shard"`
	Group       string             `json:"group"`
	State       string             `json:"state"`
	Since       time.Time          `json:"since,omitzero"`
	CheckedAt   time.Time          `json:"checked_at,omitzero"`
	Reason      string             `json:"reason,omitempty"`
	RTT         int64              `json:"rtt_us,omitempty"`
	Nodes       []healthcache.Node `json:"nodes,omitempty"`
	Drained     bool               `json:"drained"`
	DrainReason string             `json:"drain_reason,omitempty"`
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
		State: state, Since: v.Since, CheckedAt: v.CheckedAt, Reason: v.Reason, RTT: v.RTT, Nodes: v.Nodes,
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

// order is the body of PUT /shards/{shard}/drain.
type order struct {
	Reason string   `json:"reason"`
	TTL    duration `json:"ttl"`
}

// duration reads a Go duration such as "10m", or a number of seconds.
type duration time.Duration

// UnmarshalJSON reads either form.
func (d *duration) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), `"`)
	if text == string(data) {
		text += "s"
	}
	parsed, err := time.ParseDuration(text)
	if err != nil || parsed < 0 || parsed > 0 && parsed < time.Second {
		return errors.New("not a duration of a second or more")
	}
	*d = duration(parsed)
	return nil
}

func (a *api) drain(w http.ResponseWriter, r *http.Request) {
	name, ok := a.known(w, r)
	if !ok {
		return
	}
	o, p := readOrder(w, r)
	if p != nil {
		p.Write(w, r)
		return
	}
	if err := a.Router.Health().Drain(r.Context(), name, o.Reason, time.Duration(o.TTL)); err != nil {
		a.redisFailed(w, r, err)
		return
	}
	a.Logger.InfoContext(r.Context(), "drain ordered", "shard", name, "reason", o.Reason, "ttl", time.Duration(o.TTL))
	w.WriteHeader(http.StatusNoContent)
}

// readOrder reads the body of a drain. The second result says what is wrong.
func readOrder(w http.ResponseWriter, r *http.Request) (order, *problem.Problem) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return order{}, problem.New(http.StatusUnsupportedMediaType, "not_json", "The body has to be JSON, with the Content-Type application/json")
	}
	var o order
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<10))
	if err != nil || !utf8.Valid(body) || json.Unmarshal(body, &o) != nil {
		return order{}, problem.New(http.StatusBadRequest, "bad_order", `The body has to be {"reason": "text", "ttl": "10m"}, and ttl may be left out`)
	}
	if strings.TrimSpace(o.Reason) == "" {
		return order{}, problem.New(http.StatusUnprocessableEntity, "bad_reason", "A drain needs a reason, for the next operator who wonders")
	}
	return o, nil
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
