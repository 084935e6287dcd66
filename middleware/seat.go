package middleware

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/shardhop/shardhop/shardrouter"
)

// seat is one request's place: its lease, if it holds one, and what became of
// the earlier ones. The goroutine of the request and any that the handler
// starts come by.
type seat struct {
	mount *mount
	// ctx is what the handler gets. It lives as long as the request, whichever
	// leases come and go, so that a stream that gave its connection back is
	// not cut off.
	ctx    context.Context
	cancel context.CancelFunc
	// outer is the seat of another mount around this one, if there is any.
	outer *seat
	// answer is what the handler gets to write to.
	answer *answer
	// named is the shard that the session named when the request came in.
	named string
	// lastCall is when the connection must be there; zero: whenever.
	lastCall time.Time
	// turn holds one token for whoever takes or replaces the lease. It is held
	// across I/O; mu never is.
	turn chan struct{}

	mu sync.Mutex // guards the rest
	// lease is nil when the request holds none.
	lease lease
	// shard is the one of the present lease, or of the last.
	shard string
	// conn is the connection of the present lease, or the closed one of a
	// lease that was lost or ended without the handler's doing.
	conn *sql.Conn
	// remedy says how to get a connection when conn is nil.
	remedy string
	// chosen is the shard of the last Assign or Move in this request.
	chosen string
	// fresh is the group in which this request made, and stored, the session's
	// first assignment, for as long as that stands.
	fresh string
	// steered: the handler called Assign or Move, or another mount within this
	// one took part.
	steered bool
	// cut: the connection of the last lease that was given back had gone; see
	// shardrouter.Lease.Lost.
	cut   bool
	ended bool
}

func (m *mount) newSeat(parent context.Context) *seat {
	s := &seat{mount: m, turn: make(chan struct{}, 1), remedy: remedyLazy, lastCall: lastCall(parent)}
	ctx, cancel := context.WithCancel(shardrouter.Track(parent))
	s.ctx, s.cancel = context.WithValue(ctx, seatKey{}, s), cancel
	if s.outer, _ = parent.Value(seatKey{}).(*seat); s.outer != nil {
		s.outer.steer()
	}
	if rt, ok := m.cfg.Sessions.Route(parent); ok {
		s.named = rt.Shard
	}
	return s
}

// successor returns a seat for another run of the request, under the context
// that the first one got.
func (s *seat) successor(parent context.Context) *seat {
	next := s.mount.newSeat(parent)
	next.named = s.named
	return next
}

// acquire returns the present lease, and takes one first if there is none. Of
// several callers at once one takes it and the others wait for that, each no
// longer than its ctx.
func (s *seat) acquire(ctx context.Context) (lease, error) {
	if l, err := s.present(); l != nil || err != nil {
		return l, err
	}
	ctx, cancel := s.inTime(ctx)
	defer cancel()
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	if l, err := s.present(); l != nil || err != nil {
		return l, err
	}
	l, ch, err := s.take(ctx, s.route(ctx))
	if err != nil {
		s.forgive()
		return nil, err
	}
	return l, s.install(ctx, l, ch)
}

// present returns the lease that the seat holds, nil when there is none. One
// whose connection is gone is given back first.
func (s *seat) present() (lease, error) {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return nil, ErrRequestEnded
	}
	l := s.lease
	if l == nil || l.Alive() {
		s.mu.Unlock()
		return l, nil
	}
	s.vacateLocked()
	s.mu.Unlock()
	l.Release()
	return nil, nil
}

// enter waits for the turn. Who got it must leave.
func (s *seat) enter(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *seat) leave() { <-s.turn }

// install makes l the present lease and reports what taking it changed; or it
// gives l back when the request ended meanwhile. The caller has the turn.
func (s *seat) install(ctx context.Context, l lease, ch change) error {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		l.Release()
		return ErrRequestEnded
	}
	s.lease, s.shard, s.conn, s.fresh = l, l.Shard(), l.Conn(), ch.fresh()
	s.mu.Unlock()
	s.mount.report(ctx, ch)
	return nil
}

// giveBack releases the present lease because the handler wants no connection
// any more; remedy is what Conn panics with from now on.
func (s *seat) giveBack(remedy string) {
	s.mu.Lock()
	l := s.vacateLocked()
	if !s.ended {
		s.conn, s.remedy = nil, remedy
	}
	s.mu.Unlock()
	if l != nil {
		l.Release()
	}
}

// drop releases the present lease because it has to go, and leaves its closed
// connection to answer for itself.
func (s *seat) drop() {
	s.mu.Lock()
	l := s.vacateLocked()
	s.mu.Unlock()
	if l != nil {
		l.Release()
	}
}

// lost releases l, and forgets it if it is the present lease.
func (s *seat) lost(l lease) {
	s.mu.Lock()
	if s.lease == l {
		s.vacateLocked()
	}
	s.mu.Unlock()
	l.Release()
}

// end closes the seat for good. The request's context ends before the
// connection goes back, so that database/sql closes what the handler left
// open.
func (s *seat) end() {
	s.mu.Lock()
	s.ended = true
	l := s.vacateLocked()
	s.mu.Unlock()
	if l == nil {
		s.cancel()
		return
	}
	l.ReleaseAfter(s.ctx, s.cancel)
}

func (s *seat) vacateLocked() lease {
	l := s.lease
	if l != nil {
		s.cut = l.Lost()
	}
	s.lease = nil
	return l
}

// lostLease reports whether the connection of the present lease, or of the last,
// is gone.
func (s *seat) lostLease() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease != nil {
		return s.lease.Lost()
	}
	return s.cut
}

// forgive forgets the loss of a connection: the router has looked for another
// in vain since, and another run would fare no better.
func (s *seat) forgive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = false
}

// steer notes that the route was changed by other hands than this mount's.
func (s *seat) steer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steered = true
}

func (s *seat) isSteered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.steered
}

// servedBy names the shard of the present lease, or of the last.
func (s *seat) servedBy() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shard
}

// rotated reports whether the request is served by another shard than its
// session named, without the handler having chosen so.
func (s *seat) rotated() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := s.named
	if s.chosen != "" {
		due = s.chosen
	}
	return due != "" && s.shard != "" && s.shard != due
}

type seatKey struct{}

// seatOf returns the seat of the request that ctx belongs to. It panics when
// there is none, in the name of the exported function that was called.
func seatOf(ctx context.Context, fn string) *seat {
	s, ok := ctx.Value(seatKey{}).(*seat)
	if !ok {
		panic("middleware: " + fn + " found no request in this context: is middleware.New mounted, and is this the context of its request (r.Context())?")
	}
	return s
}
