package shardrouter

import (
	"context"
	"time"

	"github.com/shardhop/shardhop/healthcache"
)

// NodeSeen is what an election knows of one node.
type NodeSeen struct {
	Addr, Server, Life, GTID, Cluster string
	Writable, Absent, Drained         bool
	Leaving                           bool // drained as the writer, a short while ago
	Silent                            bool // it did not answer; not with Writable
}

// Elect runs an election. It returns the node that is to be written to, empty
// for a hold, whether it has to be recorded, and the alarm.
func Elect(record healthcache.Writer, current bool, nodes ...NodeSeen) (to string, moves bool, alarm string) {
	e := ElectWith(record, current, true, nodes...)
	return e.To, e.Moves, e.Alarm
}

// Elected is how an election ended.
type Elected struct {
	To               string
	Moves, Announced bool
	Alarm            string
}

// ElectWith runs an election; ripe: what the record announces may be completed.
func ElectWith(record healthcache.Writer, current, ripe bool, nodes ...NodeSeen) Elected {
	e := electWriter(record, sightings(nodes), current, ripe)
	if e.choice == choiceHold {
		return Elected{Alarm: e.alarm}
	}
	return Elected{nodes[e.to].Addr, e.choice != choiceKeep, e.announced, e.alarm}
}

// NextRecord runs an election by record, and returns what is written in place of
// what stands; false: nothing is.
func NextRecord(stands, record healthcache.Writer, nodes ...NodeSeen) (healthcache.Writer, bool) {
	found := sightings(nodes)
	e := electWriter(record, found, true, true)
	if e.choice == choiceHold {
		return healthcache.Writer{}, false
	}
	return e.next(stands, record, found)
}

func sightings(nodes []NodeSeen) []sighting {
	found := make([]sighting, len(nodes))
	for i, n := range nodes {
		found[i] = sighting{
			Node:   healthcache.Node{Addr: n.Addr, State: healthcache.ReadOnly, Role: roleStandby, Cluster: n.Cluster, Drained: n.Drained},
			who:    identity{server: n.Server, life: n.Life, gtid: n.GTID},
			absent: n.Absent, leaving: n.Leaving,
		}
		if n.Silent {
			found[i].State, found[i].Role = healthcache.Down, ""
		}
		if n.Writable {
			found[i].State, found[i].Role = healthcache.Up, rolePrimary
		}
	}
	return found
}

// Ahead reports whether one GTID position has everything of the other, and
// more.
func Ahead(x, y string) bool { return ahead(x, y) }

var ErrOtherServer = errOtherServer

// MeetAs opens a connection to the writer of a shard as if server were recorded.
func MeetAs(ctx context.Context, r *Router, shard, server string) error {
	p := r.layout.Load().pool(shard)
	w := *p.connector.writer.Load()
	w.server = server
	conn, err := p.connector.connectTo(ctx, &w, p.era.Load())
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// DrainOver ends what runs on the drained nodes of a shard as if their time were
// over.
func (r *Router) DrainOver(shard string) {
	r.layout.Load().pool(shard).succession.drained(time.Now().Add(drainGrace))
}

// Succeed makes another record of the writer of a shard, as a move does.
func (r *Router) Succeed(shard string) {
	c := r.layout.Load().pool(shard).connector
	w := *c.writer.Load()
	w.epoch++
	c.writer.Store(&w)
}

// Unrivalled is when a shard's other nodes were last all seen to take no writes.
func (r *Router) Unrivalled(shard string) *time.Time {
	return r.layout.Load().pool(shard).succession.mandate.unrivalled.Load()
}

// Stale reports whether the lease leads to a node that is not the writer.
func (l *Lease) Stale() bool { return l.server.stale() }

// Mandated reports whether the writer of a shard may be written to now.
func (r *Router) Mandated(shard string) bool {
	return r.layout.Load().pool(shard).succession.mandated(time.Now())
}
