// Package metrics gives what a shardhop router counts and knows to Prometheus.
// It is a module of its own, so that programs without Prometheus do not
// download its client.
//
//	c := metrics.New()
//	cfg.Router.Observer = c.Observe(cfg.Router.Observer)
//	hop, err := shardhop.Open(ctx, cfg)
//	…
//	c.Watch(hop.Router)
//	prometheus.MustRegister(c)
//
// All names begin with shardhop_, all figures are of this process alone, and
// every one has the label shard. What the whole fleet knows is the same in every
// process: state, drains, alarms and the writer's epoch.
//
//	shardhop_shard_state{state}          1 for the present state, 0 for the others
//	shardhop_shard_drained               1 while an operator drains the shard
//	shardhop_shard_alarm                 1 while something needs an operator
//	shardhop_node_state{node,state}      the same for each node that was probed
//	shardhop_writer_epoch{node}          of shards of several nodes: who takes the writes
//	shardhop_shards_of_other_rows        in the group: whoever is rotated there starts anew
//	shardhop_connections{use}            in_use, idle
//	shardhop_connections_max             the bound of the pool
//	shardhop_requests_waiting            in line for a connection
//	shardhop_requests_held               held until the shard can be written to again
//	shardhop_…_total                     the counters of [shardrouter.Stats]
//	shardhop_attempts_failed_total{verdict}   needs Observe
//	shardhop_held_seconds{end}                needs Observe; end: released, refused
//
// Labels carry names of shards and addresses of nodes, never an account.
package metrics
