package admin

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/shardrouter"
)

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
	Held     int `json:"held"` // requests that wait for the shard without a place in the pool
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
		Pool: pool{s.MaxConns, s.InUse, s.Idle, s.Waiting, s.Held},
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

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that is gone is no trouble
}
