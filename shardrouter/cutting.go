package shardrouter

import (
	"time"

	"github.com/shardhop/shardhop/healthcache"
)

// cutGrace is how long a statement that was sent has to be answered when its shard
// goes down: a server in an orderly shutdown refuses connections, and finishes what
// runs. A COMMIT whose answer is on its way would be of unknown outcome.
const cutGrace = suspectAfter / 2

// endWithEra cuts the connection when its shard has gone down, but for the answer
// to a statement that was sent a moment ago. Another one is not sent; see free.
func (c *serverConn) endWithEra() {
	if ran := c.uses.runs(); ran > 0 && ran < cutGrace {
		time.AfterFunc(cutGrace-ran, c.wire.cut)
		return
	}
	c.wire.cut()
}

// cut ends the present era: every connection of the shard is closed under
// whatever runs on it, and nobody waits for the shard any longer.
func (p *pool) cut() {
	p.rampUp()
	p.era.Swap(newEra()).end()
	p.dropIdle()
}

// cutSilent ends what runs on nodes that answer no probe, once another one is
// the writer. A node that answers keeps the work that it has.
func (p *pool) cutSilent(found []sighting) {
	w := p.connector.writer.Load() // nil: none, or a move away from one is announced
	silent := make(map[string]bool)
	for _, s := range found {
		if s.State == healthcache.Down && (w == nil || s.Addr != w.node.addr) {
			silent[s.Addr] = true
		}
	}
	p.cutNodes(silent)
}

// cutNodes ends what runs on some nodes.
func (p *pool) cutNodes(which map[string]bool) {
	if len(which) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.out {
		if which[l.Node()] {
			l.server.wire.cut()
		}
	}
}

// dropIdle closes the connections that nobody holds.
func (p *pool) dropIdle() {
	p.keeping.Lock()
	defer p.keeping.Unlock()
	p.dropIdleLocked()
}

func (p *pool) dropIdleLocked() {
	p.db.SetMaxIdleConns(0)
	p.keepIdleLocked()
}

// keepIdleLocked has connections kept that come back, where they are wanted.
func (p *pool) keepIdleLocked() {
	if !p.emptying.Load() && !p.retired.Load() {
		p.db.SetMaxIdleConns(p.shard.Load().MaxConns)
	}
}

// rampUp has the connections come back little by little from the next recovery
// on, or from now if the shard is up.
func (p *pool) rampUp() {
	p.bulkhead.ramp.Store(newRamp(p.shard.Load().MaxConns, func() (pace, bool) {
		return p.evidence.Pace(p.name)
	}))
}

// fell is told that the shard is out of service, whoever found out.
// Connections that are open stay so.
func (p *pool) fell() {
	if r := p.bulkhead.ramp.Load(); r == nil || r.begun() {
		p.rampUp()
	}
}

// heedDrain keeps the connections that come back for the next request, unless
// the shard is drained: then they are closed, so that none is left there.
func (p *pool) heedDrain() {
	if p.evidence.Drained(p.name) == p.emptying.Load() {
		return
	}
	p.keeping.Lock()
	defer p.keeping.Unlock()
	drained := p.evidence.Drained(p.name)
	if p.emptying.Swap(drained) && !drained {
		p.rampUp()
	}
	p.dropIdleLocked()
}
