package shardrouter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/shardhop/shardhop/healthcache"
)

// writerRecords keeps the record of each shard's writer for the whole fleet; see
// healthcache.Cache.
type writerRecords interface {
	Writer(shard string) (w healthcache.Writer, fresh bool)
	WriterRead(shard string) time.Time
	MoveWriter(ctx context.Context, shard string, from, to healthcache.Writer) (healthcache.Writer, error)
}

// drainGrace is how long the work that runs on a drained node may take to end,
// and how long a drained writer gets no new work while no other node takes over.
const drainGrace = time.Minute

var (
	// errNoWriter: no node of the shard is known to take the fleet's writes.
	errNoWriter = errors.New("no node of the shard is recorded as its writer")
	// errOtherServer: the address leads to another server than was recorded.
	errOtherServer = errors.New("another server than the recorded one answers")
)

// writer is the node to which a shard's connections go, for as long as the
// record stays in one epoch. It does not change; connections are compared by the
// pointer.
type writer struct {
	node   *node
	epoch  uint64
	server string // what it calls itself; empty: whatever answers will do
}

// stats is the address and epoch of a writer, nil for none.
func (w *writer) stats() (addr string, epoch uint64) {
	if w == nil {
		return "", 0
	}
	return w.node.addr, w.epoch
}

// after reports whether w took over from o. What the shard has is then what w
// has: a transaction of o's that is not there is not there for anybody.
func (w *writer) after(o *writer) bool { return w != nil && o != nil && w.epoch > o.epoch }

// succession follows the record of a shard of several nodes: it has the
// connector dial the recorded node and no other, and moves the record on when an
// own probe shows that it must go to another.
//
//	probe ──► electWriter ──► compare-and-set ──► record ──► connections
//	              ▲                                 │
//	              └────────── every beat ◄──────────┘
//
// Safe for use by several goroutines.
type succession struct {
	pool    *pool
	records writerRecords
	seen    attendance
	mandate mandate

	mu sync.Mutex // guards the rest; held for moments by probes and beats
	// last is the newest record that was followed. It outlives the record in
	// Redis, so that no epoch is given twice when Redis loses it.
	last healthcache.Writer
	// followed is when the connections began to go to the present writer, or when
	// the present move was heard of.
	followed time.Time
	alarm    string // as it was last told
}

// settle decides by what a probe found that began at the time began which node is
// to be written to, records it, and makes the shard's result of it.
func (s *succession) settle(ctx context.Context, found []sighting, began time.Time) healthcache.Result {
	s.seen.mark(found, time.Now())
	s.noteRivals(found, began)
	s.markDrained(found, time.Now())
	stands, fresh := s.records.Writer(s.pool.name)
	record := s.newest(stands)
	e := electWriter(record, found, fresh, s.ripe(began))
	if err := s.carryOut(ctx, e, stands, record, found); err != nil {
		e = election{reason: reason(err), alarm: e.alarm}
	}
	s.tell(e.alarm)
	return s.result(e, found)
}

// markDrained marks the nodes that an operator wants no work on.
func (s *succession) markDrained(found []sighting, now time.Time) {
	s.mu.Lock()
	followed := s.followed
	s.mu.Unlock()
	for i := range found {
		d, drained := s.pool.evidence.NodeDrained(s.pool.name, found[i].Addr)
		found[i].Drained = drained
		found[i].leaving = drained && d.Since.After(followed) && now.Sub(d.Since) < drainGrace
	}
}

// drained ends what runs on nodes that were drained long enough ago, once
// another node is the writer.
func (s *succession) drained(now time.Time) {
	w := s.pool.connector.writer.Load()
	if w == nil {
		return
	}
	over := make(map[string]bool)
	for _, n := range s.pool.connector.nodes {
		d, drained := s.pool.evidence.NodeDrained(s.pool.name, n.addr)
		if drained && n != w.node && now.Sub(d.Since) >= drainGrace {
			over[n.addr] = true
		}
	}
	s.pool.cutNodes(over)
}

// ripe reports whether every mandate is over that there was when the present move
// was announced, at the time at.
func (s *succession) ripe(at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return at.Sub(s.followed) > s.term()
}

// newest is the record to go by: the one that stands, unless a later one was
// followed before, which Redis has lost.
func (s *succession) newest(stands healthcache.Writer) healthcache.Writer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.Epoch > stands.Epoch {
		return s.last
	}
	return stands
}

// carryOut records what was elected, and follows the record that stands then.
func (s *succession) carryOut(ctx context.Context, e election, stands, record healthcache.Writer, found []sighting) error {
	if e.choice == choiceHold {
		s.follow()
		return nil
	}
	next, other := e.next(stands, record, found)
	if !other {
		s.follow()
		return nil
	}
	_, err := s.records.MoveWriter(ctx, s.pool.name, stands, next)
	s.follow()
	if err != nil && e.choice == choiceKeep {
		return nil // it goes on as it was
	}
	return err
}

// follow has the connections go to the recorded node, and to none while a move is
// only announced. A shard without a record keeps the node that it had.
func (s *succession) follow() {
	s.mu.Lock()
	w, _ := s.records.Writer(s.pool.name) // not before: what another goroutine followed meanwhile is newer
	lost := w.Epoch == 0 || w.Epoch < s.last.Epoch
	s.mandate.withdrawn.Store(lost)
	if lost {
		s.mu.Unlock()
		return
	}
	// A Redis that lost the last move may have got another one in the same epoch.
	known := w.Epoch == s.last.Epoch && w.Announced() == s.last.Announced() && w.Addr == s.last.Addr && w.Server == s.last.Server
	s.last = w
	before := s.pool.connector.writer.Load()
	next := s.pool.connector.named(w)
	if !known {
		s.pool.connector.writer.Store(next)
		s.followed = time.Now()
	}
	s.mu.Unlock()
	if !known && (before != nil || next != nil) {
		s.moved(before, w)
	}
}

// moved drops what leads to the node before, and tells.
func (s *succession) moved(before *writer, w healthcache.Writer) {
	p := s.pool
	if before != nil {
		if s.seen.silent(before.node.addr) {
			p.cutNodes(map[string]bool{before.node.addr: true})
		}
		p.dropIdle()
		// A member of a cluster may not have applied yet what another took.
		ps := p.passages.Load()
		ps.owed.Store(ps.count.Add(1))
	}
	if w.Announced() {
		p.cfg.Logger.Warn("the shard's writes are about to go to another node", "shard", p.name, "node", w.Addr,
			"from", w.From, "epoch", w.Epoch, "reason", w.Reason, "by", w.By)
		return
	}
	p.cfg.Logger.Info("the shard's writes go to a node", "shard", p.name, "node", w.Addr,
		"epoch", w.Epoch, "reason", w.Reason, "by", w.By)
	if f := p.cfg.Observer.Writer; f != nil {
		f(p.name, w.Addr, w.Epoch)
	}
}

// tell logs an alarm when it begins, changes and ends.
func (s *succession) tell(alarm string) {
	s.mu.Lock()
	same := s.alarm == alarm
	s.alarm = alarm
	s.mu.Unlock()
	if same {
		return
	}
	level, text := slog.LevelError, alarm
	if alarm == "" {
		level, text = slog.LevelInfo, "the alarm is over"
	}
	p := s.pool
	p.cfg.Logger.Log(context.Background(), level, "alarm of a shard", "shard", p.name, "alarm", text)
	if f := p.cfg.Observer.Alarm; f != nil {
		f(p.name, alarm)
	}
}

// result is how the shard is: as its writer is, or without one as well as a
// shard can be that takes no writes.
func (s *succession) result(e election, found []sighting) healthcache.Result {
	res := sumUp(found)
	res.Alarm = e.alarm
	w := s.pool.connector.writer.Load()
	for i := range found {
		if w == nil || e.choice == choiceHold || found[i].Addr != w.node.addr {
			continue
		}
		if found[i].writable() && (found[i].Cluster != "" || s.mandated(time.Now())) {
			return res
		}
		if found[i].writable() {
			e.reason = fmt.Sprintf("redis does not answer: whether %s is still the writer is not known", w.node.addr)
			break
		}
		e.reason = fmt.Sprintf("%s is recorded as the writer and takes no writes", w.node.addr)
	}
	if res.State == healthcache.Up {
		res.State, res.Reason = healthcache.ReadOnly, cmp.Or(e.reason, errNoWriter.Error())
	}
	return res
}
