package shardrouter

import (
	"time"

	"github.com/shardhop/shardhop/healthcache"
)

// Observer is told what a [Router] does. Every field is optional. The
// functions are called without locks, from the goroutines of requests and
// probes, and must be safe for that and return soon.
type Observer struct {
	// Attempt is called after every failed try to get a lease.
	Attempt func(Attempt)
	// Rotated is called when a request is served by another shard than its
	// route says.
	Rotated func(from, to string)
	// Reassigned is called when a session names a shard that is not
	// configured, or that is in another group.
	Reassigned func(unknown, to string)
	// Leaked is called when a handler left rows or a transaction open.
	Leaked func(shard string)
	// Copies is called when it is known or changes which shards of a group of
	// several are proved to hold the same rows: each set those that do, in
	// rotation order. With more sets than one, a rotated player may start on
	// other rows.
	Copies func(group string, sets [][]string)
	// Settled is called when a [Tx] whose COMMIT on shard got no certain answer has
	// found out what became of it, or cannot.
	Settled func(shard string, s Settlement)
	// Held is called when a request was held for a shard: with nil when it may
	// go on, else with why it was held no longer.
	Held func(shard string, waited time.Duration, err error)
	// Writer is called when the connections of a shard of several nodes go to
	// another node, or to the same in another epoch.
	Writer func(shard, node string, epoch uint64)
	// Alarm is called when an alarm of a shard begins or changes, and with an
	// empty text when it is over. The shard may serve meanwhile.
	Alarm func(shard, alarm string)
	// Health is called for every change of a shard's state.
	Health func(healthcache.Change)
}

// Attempt is one try to get a lease from one shard.
type Attempt struct {
	Shard    string
	Node     string        // address of the server, empty when none was reached
	Duration time.Duration // of this attempt
	Verdict  Verdict
	Err      error
}

// Stats is a snapshot of one shard's pool.
type Stats struct {
	Shard string
	Group string
	State healthcache.State
	// Alarm is what an operator has to look at, such as two nodes that take
	// writes; usually empty.
	Alarm string
	// Writer is the address of the node to which the shard's connections go, and
	// WriterEpoch the number of times that this has changed in the fleet; empty
	// while none is known.
	Writer      string
	WriterEpoch uint64
	// Copies names the other shards of the group that are proved to hold the
	// same rows, in rotation order; see [Router.Copies].
	Copies []string
	// MaxConns is the bound; InUse leases are out, Idle connections are open
	// and unused, Waiting requests stand in line, Held requests wait for the
	// shard to have a writable node again.
	MaxConns, InUse, Idle, Waiting, Held int
	// Leases, Failures, Busy, RotatedAway, Returned, Reassigned, Leaks and Discarded
	// count since the start: leases given, attempts failed, requests refused because the
	// shard was full, requests that went on to another shard, requests of
	// sessions that went back to this shard as their home, requests that
	// came here because their session named an unknown shard, leases with rows
	// or a transaction left open, connections closed for what a statement may
	// have left on them.
	Leases, Failures, Busy, RotatedAway, Returned, Reassigned, Leaks, Discarded uint64
	// SettledCommitted, SettledRolledBack and SettledUnknown count since the start
	// the transactions whose COMMIT here got no certain answer, by what was found
	// out; see [Settlement].
	SettledCommitted, SettledRolledBack, SettledUnknown uint64
}
