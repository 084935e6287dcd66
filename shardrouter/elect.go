package shardrouter

import (
	"cmp"
	"strings"

	"github.com/shardhop/shardhop/healthcache"
)

// sighting is what a probe found out about one node of a shard.
type sighting struct {
	healthcache.Node
	who identity
	err error // why State is not Up
	// leaving: the node was drained a short while ago, when it was the writer.
	leaving bool
	// absent: the node was restarted, or out of reach, a short while ago in the
	// eyes of this instance.
	absent bool
	// steady: it was neither for that long.
	steady bool
}

// answered reports whether the node told how it is.
func (s sighting) answered() bool { return s.Role != "" }

func (s sighting) writable() bool { return s.State == healthcache.Up }

// is reports whether the sighting is of the recorded server, at the recorded
// address. A server that gives itself no name is known by its address.
func (s sighting) is(w healthcache.Writer) bool {
	return s.Addr == w.Addr && (s.who.server == w.Server || s.who.server == "" || w.Server == "")
}

// away reports whether the recorded node was gone at some time since it was
// recorded, so that another one may have taken over meanwhile.
func (s sighting) away(w healthcache.Writer) bool {
	return s.absent || s.who.life != "" && w.Life != "" && s.who.life != w.Life
}

// with reports whether two nodes take writes into the same rows: they are
// members of one synchronous cluster, or one server at two addresses.
func (s sighting) with(o sighting) bool {
	return s.Cluster != "" && s.Cluster == o.Cluster || s.who.server != "" && s.who.server == o.who.server
}

// choice is what an election ends with.
type choice int

const (
	choiceHold     choice = iota // no node is to be written to
	choiceKeep                   // the recorded node goes on
	choiceMove                   // another one takes over
	choiceComplete               // the one that was announced takes over
)

// election is what electWriter comes to.
type election struct {
	choice choice
	to     int    // the node that is to be written to; with choiceHold without meaning
	reason string // why it is not simply kept
	alarm  string // what an operator has to look at; usually empty
	// announced: a move is to be announced first, since the node before may still
	// take writes from those who have not heard of it.
	announced bool
}

// electWriter says which node of a shard takes its writes, from the record, the
// zero Writer where there is none, and what this instance has just seen of every
// node. current: the record is known to be the one by which the fleet goes now.
// ripe: everybody has heard of the move that the record announces.
//
//	recorded node writable          it goes on; if another is writable too, with
//	                                an alarm, unless it was away and the other
//	                                one is ahead of it: then that one takes over
//	only one other writable         it takes over
//	several others writable         hold, with an alarm
//	none writable                   hold
//
// The members of one Galera cluster count as one node here, of which the first
// in the list is taken. A drained node counts as one that takes no writes while
// another one takes them that lacks nothing of it; if none does, a writer that
// was just drained gets no new work for a while, and then goes on with an alarm.
// Where the record is not current nothing is moved, and a recorded node that is
// not the only one writable may have been replaced without this instance's
// knowledge.
//
// A move away from a node that was not seen to take no writes is announced
// first; see completeMove.
func electWriter(record healthcache.Writer, nodes []sighting, current, ripe bool) election {
	e := elect(record, nodes, current, ripe)
	e.announced = e.choice == choiceMove && !yielded(record, nodes, e.to)
	return e
}

func elect(record healthcache.Writer, nodes []sighting, current, ripe bool) election {
	writable := writableAmong(nodes)
	if len(writable) == 0 {
		return election{reason: "no node takes writes"}
	}
	if record.Announced() {
		return completeMove(record, nodes, writable, current, ripe)
	}
	at := recordedAmong(record, nodes, writable)
	if drained := recordedAmong(record, nodes, all(nodes)); at < 0 && drained >= 0 && nodes[drained].mayNotYield(nodes[writable[0]]) {
		at = drained
	}
	if at < 0 {
		return succeed(record, nodes, writable, current)
	}
	if nodes[at].leaving {
		return election{reason: nodes[at].Addr + " is drained, and no other node takes over yet"}
	}
	rivals := rivalsOf(nodes, writable, at)
	if len(rivals) == 0 {
		return election{choice: choiceKeep, to: at, alarm: drainedInVain(nodes[at])}
	}
	alarm := "several nodes take writes: " + addresses(nodes, append([]int{at}, rivals...))
	if !current {
		return election{reason: "redis does not answer, and " + alarm, alarm: alarm}
	}
	if nodes[at].away(record) {
		if to, ok := onlyAhead(nodes, rivals, at); ok {
			return election{choice: choiceMove, to: to, alarm: alarm, reason: record.Addr + " came back, and " + nodes[to].Addr + " is ahead of it"}
		}
	}
	return election{choice: choiceKeep, to: at, alarm: alarm}
}

// next is the record of what was elected; false: it is as it was. stands is what
// Redis has, record what was gone by.
func (e election) next(stands, record healthcache.Writer, found []sighting) (next healthcache.Writer, other bool) {
	to := found[e.to]
	next = healthcache.Writer{
		Addr: to.Addr, Server: to.who.server, Life: to.who.life, GTID: to.who.gtid,
		Epoch: record.Epoch, Reason: e.reason,
	}
	lost := stands.Epoch < record.Epoch
	before := record
	if lost && stands.Epoch > 0 && !yielded(stands, found, e.to) {
		// Whoever wrote that did not know the record, and may write to its node.
		before, e.announced = stands, true
	}
	switch {
	case e.choice == choiceMove, lost:
		next.Epoch++
	case e.choice == choiceComplete:
	case !to.steady || next.Life == record.Life:
		return record, false
	default:
		next.Reason = cmp.Or(record.Reason, "restarted")
	}
	if e.announced {
		next.From, next.FromServer = before.Addr, before.Server
		switch {
		case before.Announced():
			next.From, next.FromServer = before.From, before.FromServer
		case before.Epoch == 0:
			next.From = found[unseenBeside(found, e.to)].Addr
		}
	}
	return next, true
}

// drainedInVain is the alarm of a drained node that is written to all the same.
func drainedInVain(n sighting) string {
	if !n.Drained {
		return ""
	}
	return n.Addr + " is drained and takes the writes: no other node does"
}

// succeed elects where the recorded node takes no writes, or none is recorded.
func succeed(record healthcache.Writer, nodes []sighting, writable []int, current bool) election {
	first := writable[0]
	if rivals := rivalsOf(nodes, writable, first); len(rivals) > 0 {
		alarm := "several nodes take writes and none of them is recorded: " + addresses(nodes, append([]int{first}, rivals...))
		return election{reason: alarm, alarm: alarm}
	}
	if !current {
		return election{reason: "redis does not answer: no other node can be recorded"}
	}
	reason := "the only node that takes writes"
	if nodes[first].Addr == record.Addr {
		reason = "another server than before answers at the address"
	}
	return election{choice: choiceMove, to: first, reason: reason}
}

// mayNotYield reports whether a node that takes writes has some that the node to
// is known to lack.
func (s sighting) mayNotYield(to sighting) bool {
	return s.writable() && !s.with(to) && lacks(to.who.gtid, s.who.gtid)
}

func all(nodes []sighting) []int {
	which := make([]int, len(nodes))
	for i := range nodes {
		which[i] = i
	}
	return which
}

// writableAmong are the nodes that take writes: those that are not drained, or
// all if that leaves none.
func writableAmong(nodes []sighting) []int {
	var writable, open []int
	for i, n := range nodes {
		if !n.writable() {
			continue
		}
		writable = append(writable, i)
		if !n.Drained {
			open = append(open, i)
		}
	}
	if len(open) == 0 {
		return writable
	}
	return open
}

// recordedAmong is which of some nodes is the recorded one; -1: none.
func recordedAmong(record healthcache.Writer, nodes []sighting, which []int) int {
	for _, i := range which {
		if record.Epoch > 0 && nodes[i].is(record) {
			return i
		}
	}
	return -1
}

// rivalsOf are the writable nodes whose writes the node at does not get.
func rivalsOf(nodes []sighting, writable []int, at int) (rivals []int) {
	for _, i := range writable {
		if i != at && !nodes[i].with(nodes[at]) {
			rivals = append(rivals, i)
		}
	}
	return rivals
}

// onlyAhead is the one rival whose history has everything that the node at has,
// and more.
func onlyAhead(nodes []sighting, rivals []int, at int) (to int, ok bool) {
	for _, i := range rivals {
		if ahead(nodes[i].who.gtid, nodes[at].who.gtid) {
			if ok {
				return 0, false
			}
			to, ok = i, true
		}
	}
	return to, ok
}

func addresses(nodes []sighting, which []int) string {
	list := make([]string, len(which))
	for k, i := range which {
		list[k] = nodes[i].Addr
	}
	return strings.Join(list, ", ")
}
