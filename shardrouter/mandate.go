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
	// unrivalled is when the last look began that showed so; Unix nanoseconds.
	unrivalled atomic.Int64
	// withdrawn: what stands in Redis is not the record that is followed.
	withdrawn atomic.Bool
}

// term is how long a mandate lasts: three beats, of which two may be missed.
func (s *succession) term() time.Duration { return s.pool.cfg.HealthInterval * 3 / 2 }

// mandated reports whether the shard's writer may be written to. A pool out of
// use reads no record any more; what runs there comes to its end.
func (s *succession) mandated(now time.Time) bool {
	if s.pool.used.Err() != nil {
		return true
	}
	if now.Sub(time.Unix(0, s.mandate.unrivalled.Load())) <= s.term() {
		return true
	}
	return !s.mandate.withdrawn.Load() && now.Sub(s.records.WriterRead(s.pool.name)) <= s.term()
}

// awaitMandate waits for the confirmation of a record that was not confirmed
// lately, and reports whether w is the writer then. Three intervals are enough
// for it to come.
func (s *succession) awaitMandate(w *writer) bool {
	for enough := time.Now().Add(2 * s.term()); !s.mandated(time.Now()); {
		if w != s.pool.connector.writer.Load() || time.Now().After(enough) {
			return false
		}
		<-time.After(s.term() / 30)
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
	s.mandate.unrivalled.Store(began.UnixNano())
}
