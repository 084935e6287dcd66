package shardrouter

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardhop/shardhop/healthcache"
)

// suspectAfter is how long an attempt may take before a probe is asked what
// the matter is.
const suspectAfter = 500 * time.Millisecond

// errAttemptTimeout: the time of one attempt is over.
var errAttemptTimeout = errors.New("shardrouter: no connection in time")

// pool lends the connections of one shard. Its methods are safe for use by
// several goroutines.
type pool struct {
	name      string
	cfg       *Config
	connector *connector
	// succession is nil for a shard of one node.
	succession *succession
	db         *sql.DB
	bulkhead   *bulkhead
	hold       *hold
	evidence   evidence
	isOf       func(DSN) bool // whether that is the pool's own
	used       context.Context
	quit       context.CancelFunc // ends used
	outcomes   outcomeTable
	keys       keyQueues
	markers    string        // the quoted name of its table of markers; empty: the DSN names no database
	pingAfter  time.Duration // see pingAfter

	clusters clusters                 // of the nodes; safe for any goroutine
	shard    atomic.Pointer[Shard]    // as it is configured now; see adopt
	passages atomic.Pointer[passages] // shared with the other shards of the group
	// left is the count of passages at which a session last went on from here,
	// caughtUp the one up to which the shard has applied what the others wrote.
	left, caughtUp atomic.Int64

	era      atomic.Pointer[era]
	emptying atomic.Bool          // see heedDrain; changed under keeping
	retired  atomic.Bool          // a reload took the pool out of use
	heir     atomic.Pointer[pool] // what the reload put in its place, if anything
	// markerless: it was told that no marker can be written.
	markerless atomic.Bool
	upSince    atomic.Pointer[time.Time] // see upFor
	counter    counters

	// keeping orders what is said to sql.DB about idle connections: probes,
	// notices and requests say so, and the last word has to be about a drain.
	keeping sync.Mutex

	mu  sync.Mutex // guards out; held for moments by requests and probes
	out map[*Lease]struct{}
}

// counters count since the start; see Stats.
type counters struct {
	leases, failures, busy, rotatedAway, returned, reassigned, leaks, discarded atomic.Uint64
	committed, rolledBack, unknown                                              atomic.Uint64 // see Settlement
}

// evidence takes what requests find out about shards; see healthcache.Cache.
type evidence interface {
	Suspect(shard, reason string)
	Succeeded(shard string)
	Drained(shard string) bool
	// Copies is Router.Copies.
	Copies(a, b string) bool
	// Pace is how fast this instance may open connections to a shard that is
	// back from an outage; false: it is not back.
	Pace(shard string) (pace, bool)
	// NodeDrained is the order that stands for a node of the shard, if any.
	NodeDrained(shard, addr string) (healthcache.NodeDrain, bool)
	writerRecords
}

func newPool(shard Shard, cfg *Config, e evidence) (*pool, error) {
	p := &pool{
		name:      shard.Name,
		cfg:       cfg,
		evidence:  e,
		isOf:      func(d DSN) bool { return d == shard.DSN },
		pingAfter: pingAfter,
		out:       make(map[*Lease]struct{}),
	}
	p.bulkhead = newBulkhead(shard.MaxConns, cfg.maxWaiting(shard), cfg.BusyTimeout, p.stalled)
	p.shard.Store(&Shard{MaxConns: shard.MaxConns})
	p.era.Store(newEra())
	nodes, err := parseDSN(shard.DSN, cfg.driverTimeouts())
	if err != nil {
		return nil, err
	}
	p.outcomes.in(nodes[0].DBName)
	p.markers = tableIn(nodes[0].DBName, markerTableName)
	if p.connector, err = newConnector(p, nodes); err != nil {
		return nil, err
	}
	if len(nodes) > 1 {
		p.succession = &succession{pool: p, records: e}
	}
	p.db = sql.OpenDB(p.connector)
	// The bulkhead bounds the connections; a bound of sql.DB's own would count
	// those that a leaking handler keeps.
	p.db.SetMaxOpenConns(0)
	p.db.SetMaxIdleConns(shard.MaxConns)
	return p, nil
}

// adopt takes in what a layout says of the shard. A pool that comes to a group
// has yet to see what was written there.
func (p *pool) adopt(s Shard, ps *passages) {
	if old := p.passages.Swap(ps); old != nil && old != ps {
		p.left.Store(0)
		p.caughtUp.Store(-1)
	}
	if before := p.shard.Swap(&s); before.MaxConns == s.MaxConns {
		return
	}
	p.bulkhead.resize(s.MaxConns, p.cfg.maxWaiting(s))
	p.keeping.Lock()
	defer p.keeping.Unlock()
	p.keepIdleLocked()
}

// close closes the connections that nobody holds, and the others as they come
// back. What a connection says to its end is of no use: it is gone either way.
func (p *pool) close() {
	p.quit()
	p.hold.close()
	_ = p.db.Close()
}

// lend makes one attempt: a slot, waited for until the visitor's deadline at
// the latest, then within share a connection that is verified. The error is the
// attempt's, as an *attemptError, or the caller's own.
func (p *pool) lend(ctx context.Context, v visitor, share time.Duration) (*Lease, error) {
	p.heedDrain()
	at := p.entry()
	place, err := p.bulkhead.enter(ctx, at.era, v)
	if err != nil {
		return nil, p.failed(ctx, at.era, at.start, err)
	}
	return p.occupy(ctx, at, place, min(share, time.Until(v.deadline)))
}

// lendNow is lend for a request that has somewhere else to go: it waits for no
// slot.
func (p *pool) lendNow(ctx context.Context, share time.Duration) (*Lease, error) {
	at := p.entry()
	place, ok := p.bulkhead.enterNow()
	if !ok {
		return nil, ErrBusy
	}
	return p.occupy(ctx, at, place, share)
}

// entry is the moment at which an attempt begins.
type entry struct {
	start    time.Time
	era      *era
	passages int64 // their count
}

func (p *pool) entry() entry { return entry{time.Now(), p.era.Load(), p.passages.Load().count.Load()} }

// occupy takes a connection into a slot, or gives the slot back.
func (p *pool) occupy(ctx context.Context, at entry, place *ramp, share time.Duration) (*Lease, error) {
	lease, err := p.connect(ctx, at.era, share)
	if err != nil {
		p.bulkhead.leave(place)
		return nil, p.failed(ctx, at.era, at.start, err)
	}
	lease.place, lease.began = place, at.passages
	if !p.book(lease) {
		_ = lease.conn.Close() // it is cut already
		p.bulkhead.leave(place)
		return nil, p.failed(ctx, at.era, at.start, &nodeError{lease.Node(), errNotWritable})
	}
	p.counter.leases.Add(1)
	p.hold.served(at.start)
	return lease, nil
}

// book puts a lease on the books, unless its node has ceased to be the writer:
// whoever ends what runs on a node looks for it there, and may have looked.
func (p *pool) book(l *Lease) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.server.stale() {
		l.server.wire.cut()
		return false
	}
	p.out[l] = struct{}{}
	return true
}

// back takes a lease off the books and frees its slot.
func (p *pool) back(l *Lease) {
	p.mu.Lock()
	delete(p.out, l)
	p.mu.Unlock()
	p.bulkhead.leave(l.place)
}

// waitingFor reports whether what runs on some lease has gone without an end
// for d.
func (p *pool) waitingFor(d time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.out {
		if l.server.uses.longerThan(d) {
			return true
		}
	}
	return false
}

// overdue reports whether a statement on some lease has gone without an answer
// for d, once for each such statement.
func (p *pool) overdue(d time.Duration) (found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.out {
		if l.server.uses.overdue(d) {
			found = true
		}
	}
	return found
}

// stalled raises the suspicion that a wait gives in which nothing was answered.
func (p *pool) stalled() {
	p.evidence.Suspect(p.name, "requests wait and nothing is answered")
}

// connect takes a connection out of sql.DB, which verifies pooled ones (see
// serverConn.ResetSession) and dials when it has none. A server that has no
// connection to spare is asked again for as long as a full pool is waited for.
func (p *pool) connect(ctx context.Context, e *era, share time.Duration) (*Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	slow := time.AfterFunc(suspectAfter, func() {
		p.evidence.Suspect(p.name, "no connection after "+suspectAfter.String())
	})
	defer slow.Stop()

	var busy error
	patience := time.Now().Add(p.cfg.BusyTimeout)
	for pause := 20 * time.Millisecond; ; pause *= 2 {
		conn, err := p.db.Conn(ctx)
		switch {
		case err == nil:
			return newLease(p, conn)
		case p.classify(err, occasion{phase: phaseConnect}) == VerdictBusy:
			busy = err
		case busy != nil && ctx.Err() != nil:
			return nil, busy // which the end of the wait shall not hide
		default:
			return nil, err
		}
		if time.Until(patience) < pause || !sleep(ctx, pause) {
			return nil, busy
		}
	}
}

func (p *pool) stats() Stats {
	held, _ := p.hold.held()
	addr, epoch := p.connector.writer.Load().stats()
	return Stats{
		Writer:      addr,
		WriterEpoch: epoch,
		Shard:       p.name,
		Group:       p.shard.Load().Group,
		MaxConns:    p.shard.Load().MaxConns,
		InUse:       int(p.bulkhead.inUse.Load()),
		Waiting:     int(p.bulkhead.waiting.Load()),
		Held:        held,
		Idle:        p.db.Stats().Idle,
		Leases:      p.counter.leases.Load(),
		Failures:    p.counter.failures.Load(),
		Busy:        p.counter.busy.Load(),
		RotatedAway: p.counter.rotatedAway.Load(),
		Returned:    p.counter.returned.Load(),
		Reassigned:  p.counter.reassigned.Load(),
		Leaks:       p.counter.leaks.Load(),
		Discarded:   p.counter.discarded.Load(),

		SettledCommitted:  p.counter.committed.Load(),
		SettledRolledBack: p.counter.rolledBack.Load(),
		SettledUnknown:    p.counter.unknown.Load(),
	}
}

// sleep waits for d and reports true, or false when ctx is done first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
