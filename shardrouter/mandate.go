package shardrouter

import (
	"sync/atomic"
	"time"
)

// mandate is for how long an instance writes to the node that it knows as the
// writer: so long after the last exchange with Redis that confirmed the record.
// Whoever announces that another node takes over waits as long, and then nobody
// writes to the node before, whoever has not heard of it.
//
// An instance that is cut off from Redis goes on for as long as it sees itself
// that every other node of the shard takes no writes.
type mandate struct {
	// unrivalled is when the last look began that showed so; nil: none did. It
	// keeps its monotonic reading: a clock that is set back prolongs nothing.
	unrivalled atomic.Pointer[time.Time]
	// final is what was so when the pool went out of use; nil: it is used.
	final atomic.Pointer[bool]
	// withdrawn: what stands in Redis is not the record that is followed.
	withdrawn atomic.Bool
}

// term is how long a mandate lasts: three beats, of which two may be missed.
func (s *succession) term() time.Duration { return s.pool.cfg.HealthInterval * 3 / 2 }

// mandated reports whether the shard's writer may be written to. A pool that a
// reload replaced goes by the one that is used instead. Another one out of use
// reads no record any more; what runs there comes to its end, if it could be
// written to when that came.
func (s *succession) mandated(now time.Time) bool {
	if heir := s.pool.heir.Load(); heir != nil && heir.succession != nil {
		return heir.succession.mandated(now)
	}
	if final := s.mandate.final.Load(); final != nil {
		return *final
	}
	if at := s.mandate.unrivalled.Load(); at != nil && now.Sub(*at) <= s.term() {
		return true
	}
	return !s.mandate.withdrawn.Load() && now.Sub(s.records.WriterRead(s.pool.name)) <= s.term()
}

// finish settles for good whether the pool may be written to. Call it while its
// record is still read.
func (p *pool) finish() {
	if p.succession != nil {
		may := p.succession.mandated(time.Now())
		p.succession.mandate.final.CompareAndSwap(nil, &may)
	}
}

// awaitMandate waits for the confirmation of a record that was not confirmed
// lately, and reports whether w is the writer then. Three intervals are enough
// for it to come; done ends the wait before.
func (s *succession) awaitMandate(done <-chan struct{}, w *writer) bool {
	for enough := time.Now().Add(2 * s.term()); !s.mandated(time.Now()); {
		hopeless := s.mandate.final.Load() != nil && s.pool.heir.Load() == nil
		if hopeless || w != s.pool.connector.writer.Load() || time.Now().After(enough) {
			return false
		}
		select {
		case <-done:
			return false
		case <-time.After(s.term() / 30):
		}
	}
	return w == s.pool.connector.writer.Load()
}

// noteRivals takes in what a look that began at the time began has shown.
func (s *succession) noteRivals(found []sighting, began time.Time) {
	w := s.pool.connector.writer.Load()
	for _, n := range found {
		if w == nil || n.Addr != w.node.addr && (!n.answered() || n.writable()) {
			return
		}
	}
	s.mandate.unrivalled.Store(&began)
}
