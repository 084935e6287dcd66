package shardrouter

import (
	"github.com/shardhop/shardhop/healthcache"
)

// A move of the writer away from a node that may still take writes has two steps,
// so that none is lost to an instance that hears of it late:
//
//	announced ──► everybody's mandate is over ──► the nodes are compared ──► completed
//	                                                    │
//	                                                    └──► taken back, if the node
//	                                                         before has what the
//	                                                         next one lacks
//
// Nobody is written to between the two, and nothing is believed that the node
// before confirms then. What it confirmed until then is either on the next one
// as well, or a reason to go back, unless the node is silent.

// yielded reports whether the node before, by the record, takes no more writes
// that the node to lacks, so that a move need not be announced. Without a record,
// which Redis may have lost, it may be any that is not seen.
func yielded(record healthcache.Writer, nodes []sighting, to int) bool {
	if record.Epoch == 0 {
		return unseenBeside(nodes, to) < 0
	}
	before := record
	if record.Announced() {
		before = record.Before()
	}
	next := nodes[to]
	if next.Cluster != "" || next.is(before) || before.Server != "" && next.who.server == before.Server {
		return true
	}
	for _, n := range nodes {
		if n.is(before) && n.answered() && !n.writable() {
			return true
		}
	}
	return false
}

// unseenBeside is a node that may take writes which the node to lacks, since it
// did not tell how it is; -1: there is none.
func unseenBeside(nodes []sighting, to int) int {
	for i, n := range nodes {
		if i != to && !n.answered() && nodes[to].Cluster == "" {
			return i
		}
	}
	return -1
}

// completeMove ends a move that was announced, one way or the other. Nobody has
// been written to since.
func completeMove(record healthcache.Writer, nodes []sighting, writable []int, current, ripe bool) election {
	to := recordedAmong(record, nodes, writable)
	from := recordedAmong(record.Before(), nodes, all(nodes))
	back := from >= 0 && nodes[from].writable() && (to < 0 || nodes[from].mayNotYield(nodes[to]))
	switch {
	case !current:
		return election{reason: "redis does not answer: the move to " + record.Addr + " waits"}
	case back && to >= 0:
		return election{choice: choiceMove, to: from, reason: record.From + " is back, and has what " + record.Addr + " lacks",
			alarm: "several nodes take writes: " + addresses(nodes, []int{from, to})}
	case back:
		return election{choice: choiceMove, to: from, reason: record.From + " is back"}
	case to < 0:
		return succeed(record, nodes, writable, current)
	case !ripe:
		return election{reason: "everybody has to hear first that " + record.Addr + " takes over"}
	}
	return election{choice: choiceComplete, to: to, reason: record.Reason}
}
