package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shardhop/shardhop/shardrouter"
)

var (
	descState       = describe("shard_state", "1 for the state that the shard is in, 0 for the others.", "state")
	descDrained     = describe("shard_drained", "1 while an operator wants no players on the shard.")
	descAlarm       = describe("shard_alarm", "1 while something about the shard needs an operator; the log says what.")
	descNode        = describe("node_state", "1 for the state that the node was probed in, 0 for the others.", "node", "state")
	descWriter      = describe("writer_epoch", "How often another node of the shard became its writer; the label names the present one.", "node")
	descOtherRows   = describe("shards_of_other_rows", "Other shards of the group that are not proved to hold the same rows: a player who is rotated there starts on other rows.")
	descConnections = describe("connections", "Open connections of the shard's pool, by use.", "use")
)

// figure is one number of a pool's snapshot.
type figure struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(shardrouter.Stats) float64
}

// poolFigures are those with no label but the shard.
var poolFigures = [...]figure{
	gauge("connections_max", "Bound of the shard's pool.", func(s shardrouter.Stats) int { return s.MaxConns }),
	gauge("requests_waiting", "Requests in line for a connection of the shard.", func(s shardrouter.Stats) int { return s.Waiting }),
	gauge("requests_held", "Requests held until the shard can be written to again.", func(s shardrouter.Stats) int { return s.Held }),
	counter("leases_total", "Connections lent.", func(s shardrouter.Stats) uint64 { return s.Leases }),
	counter("failures_total", "Failed tries to get a connection.", func(s shardrouter.Stats) uint64 { return s.Failures }),
	counter("busy_total", "Requests refused because the shard was full.", func(s shardrouter.Stats) uint64 { return s.Busy }),
	counter("rotated_away_total", "Requests that went on to another shard.", func(s shardrouter.Stats) uint64 { return s.RotatedAway }),
	counter("returned_total", "Requests of sessions that went back to the shard as their home.", func(s shardrouter.Stats) uint64 { return s.Returned }),
	counter("reassigned_total", "Requests that came because their session named an unknown shard.", func(s shardrouter.Stats) uint64 { return s.Reassigned }),
	counter("leaks_total", "Leases given back with rows or a transaction open.", func(s shardrouter.Stats) uint64 { return s.Leaks }),
	counter("discarded_total", "Connections closed for what a statement may have left on them.", func(s shardrouter.Stats) uint64 { return s.Discarded }),
	counter("settled_committed_total", "Transactions whose COMMIT got no answer and proved to be committed.", func(s shardrouter.Stats) uint64 { return s.SettledCommitted }),
	counter("settled_rolled_back_total", "Transactions whose COMMIT got no answer and proved not to be committed.", func(s shardrouter.Stats) uint64 { return s.SettledRolledBack }),
	counter("settled_unknown_total", "Transactions of which nothing could prove whether they were committed.", func(s shardrouter.Stats) uint64 { return s.SettledUnknown }),
}

// describe describes a metric with the label shard and further ones.
func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("shardhop_"+name, help, append([]string{"shard"}, labels...), nil)
}

func gauge(name, help string, value func(shardrouter.Stats) int) figure {
	return figure{describe(name, help), prometheus.GaugeValue, func(s shardrouter.Stats) float64 { return float64(value(s)) }}
}

func counter(name, help string, value func(shardrouter.Stats) uint64) figure {
	return figure{describe(name, help), prometheus.CounterValue, func(s shardrouter.Stats) float64 { return float64(value(s)) }}
}
