package shardrouter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shardhop/shardhop/healthcache"
)

// Lease lends a verified connection for a route: of the route's own shard, or
// of the next shard of its group that can give one. A route without a shard,
// or with one that is not configured in its group, gets one by the policy of
// first assignment. key makes RotationSpread stable for one session; it may be
// empty.
//
// With Config.Failback a route that was rotated away from its home may get a
// lease of that instead; see [Lease.Returned].
//
// All attempts together take at most Config.AcquireTimeout. The error is an
// [*UnavailableError], ErrUnknownGroup, ErrNestedLease, ErrClosed, or the
// cause for which ctx ended.
func (r *Router) Lease(ctx context.Context, rt Route, key string) (*Lease, error) {
	return r.newSearch(ctx, rt, key).run(ctx)
}

// search is the way of one request to a lease. It is used by one goroutine.
type search struct {
	r     *Router
	asked Route
	key   string
	// exactly: whoever asks wants that shard and no other, and may come from
	// another one.
	exactly bool
	holder  *holder

	// What follows from asked in the layout; see orient.
	layout *layout
	route  Route
	ring   []Shard // the shards that may serve, in rotation order
	picked bool    // route.Shard was picked by this search
	// misplaced is the shard that the route came with, if it is not configured
	// in the route's group.
	misplaced string

	deadline time.Time
	tried    []string
	attempts []Attempt
	holds    holds
}

func (r *Router) newSearch(ctx context.Context, rt Route, key string) *search {
	s := &search{r: r, asked: rt, key: key, holder: holderOf(ctx)}
	s.deadline = time.Now().Add(r.cfg.AcquireTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(s.deadline) {
		s.deadline = d
	}
	return s
}

// run goes through the candidates, and again whenever it was worth waiting for
// one of them.
func (s *search) run(ctx context.Context) (*Lease, error) {
	for {
		if err := s.orient(); err != nil {
			return nil, err
		}
		began := time.Now()
		lease, err := s.round(ctx)
		if err == nil || !s.mayHold(err) {
			return lease, err
		}
		if held := s.wait(ctx, began); held != nil {
			return nil, s.heldInVain(ctx, err, held)
		}
	}
}

// orient has the search begin with the shards that there are now. A route
// whose shard is not among those of its group counts as one without.
func (s *search) orient() error {
	s.layout = s.r.layout.Load()
	s.route, s.picked, s.misplaced = s.asked, false, ""
	m := s.layout.members[s.asked.Shard]
	if s.exactly {
		if m == nil {
			return fmt.Errorf("%w: %q", ErrUnknownShard, s.asked.Shard)
		}
		s.route.Group, s.ring = m.Group, []Shard{m.Shard}
		s.holds.unwanted = m.OnFailure == OnFailureRotate
		return nil
	}
	g := s.layout.groups[s.asked.Group]
	if g == nil {
		return fmt.Errorf("%w: %q", ErrUnknownGroup, s.asked.Group)
	}
	s.ring = g.ring
	if m == nil || m.Group != s.asked.Group {
		s.misplaced, s.route.Shard = s.asked.Shard, ""
	}
	return nil
}

// round tries the candidates in order, each once, looking at the health anew
// before every attempt; then, when nothing that looked usable was, those that
// are said to be out of service.
func (s *search) round(ctx context.Context) (*Lease, error) {
	if s.r.closed.Load() {
		return nil, ErrClosed
	}
	if lease := s.tryHome(ctx); lease != nil {
		return lease, nil
	}
	if s.route.Shard == "" {
		s.route.Shard = s.r.assign.next(assignable(s.ring, s.route.Group, s.r.health.Snapshot()))
		s.picked = true
	}
	for {
		shard, left := s.next()
		if shard == "" {
			break
		}
		lease, err := s.try(ctx, shard, left)
		if lease != nil || err != nil {
			return lease, err
		}
	}
	return s.lastResort(ctx)
}

// next names the candidate to try now, and how many are left with it.
func (s *search) next() (shard string, left int) {
	if left, ok := s.steady(); ok {
		return s.route.Shard, left
	}
	order, _ := s.candidates()
	if order = s.untried(order); len(order) == 0 {
		return "", 0
	}
	return order[0], len(order)
}

// steady reports the common case in which the route's own shard comes first,
// without working out the rest of the order, and how many could follow.
func (s *search) steady() (left int, ok bool) {
	m := s.layout.members[s.route.Shard]
	if m == nil || len(s.tried) > 0 {
		return 0, false
	}
	if v := s.r.health.View(s.route.Shard); !usable(v) || drained(v) {
		return 0, false
	}
	if m.OnFailure.stays(s.holds.onward) {
		return 1, true
	}
	return len(s.ring), true
}

func (s *search) candidates() (attempts, outOfService []string) {
	return candidates(candidateInput{
		ring:     s.ring,
		route:    s.route,
		picked:   s.picked,
		onward:   s.holds.onward,
		key:      s.key,
		health:   s.r.health.Snapshot(),
		rotation: s.r.cfg.Rotation,
		rotateTo: s.r.cfg.RotateTo,
		copies:   s.r.Copies,
	})
}

func (s *search) untried(shards []string) []string {
	return slices.DeleteFunc(shards, func(name string) bool { return slices.Contains(s.tried, name) })
}

// try makes one attempt with its part of the time. Neither a lease nor an
// error means: go on.
func (s *search) try(ctx context.Context, shard string, left int) (*Lease, error) {
	s.tried = append(s.tried, shard)
	share := time.Until(s.deadline) / time.Duration(left)
	if share <= 0 {
		return nil, nil
	}
	if !s.settled(ctx, shard, share) {
		return nil, ctx.Err()
	}
	p := s.layout.pool(shard)
	ends := time.Now().Add(share)
	lease, err := p.lend(ctx, visitor{deadline: s.deadline, nested: s.holder.holds(p), held: s.holds.count > 0}, share)
	if err == nil {
		err = s.arrive(ctx, lease, ends)
	}
	if err == nil {
		s.holder.add(lease)
		s.served(ctx, lease)
		return lease, nil
	}
	return nil, s.judge(shard, err)
}

// arrive has a lease catch up with its cluster, unless the session has been on
// this shard all along. One that cannot goes back, and is a failed attempt.
func (s *search) arrive(ctx context.Context, l *Lease, ends time.Time) error {
	stayed := l.Shard() == s.route.Shard && !s.picked && !s.exactly
	if stayed && !l.pool.behind() {
		return nil
	}
	limited, cancel := context.WithDeadline(ctx, ends)
	defer cancel()
	start := time.Now()
	err := l.catchUp(limited)
	if err == nil {
		return nil
	}
	l.Release()
	return l.pool.failed(ctx, l.server.era, start, &nodeError{l.Node(), err})
}

// settled waits for the verdict on a suspected shard, and for a probe of one
// whose writer is not known, and reports whether it is worth an attempt.
func (s *search) settled(ctx context.Context, shard string, share time.Duration) bool {
	unknown := s.layout.pool(shard).connector.writer.Load() == nil
	if !unknown && s.r.health.View(shard).State != healthcache.Suspect {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	if unknown {
		return usable(s.r.health.Check(ctx, shard))
	}
	return usable(s.r.health.Settle(ctx, shard))
}

// judge keeps a failed attempt and returns nil, or the error that ends the
// search: the caller's own end, or that the route's own shard is full. Load is
// no reason to move.
func (s *search) judge(shard string, err error) error {
	var failed *attemptError
	if !errors.As(err, &failed) {
		return err
	}
	s.attempts = append(s.attempts, failed.Attempt)
	s.r.cfg.Logger.Warn("no connection", "shard", shard, "node", failed.Node,
		"verdict", failed.Verdict, "after", failed.Duration, "error", failed.Err)
	if failed.Verdict == VerdictBusy && shard == s.route.Shard && !s.picked {
		return s.unavailable()
	}
	return nil
}

// lastResort probes what is said to be out of service, all at once, and takes
// the first that answers, in the order of the candidates. Concurrent requests
// share a probe.
func (s *search) lastResort(ctx context.Context) (*Lease, error) {
	_, order := s.candidates()
	order = slices.DeleteFunc(s.untried(order), func(name string) bool { return s.layout.pool(name).hold.over() })
	checkCtx, cancel := context.WithDeadline(ctx, s.deadline)
	defer cancel()
	found := make([]chan bool, len(order))
	for i, shard := range order {
		found[i] = make(chan bool, 1)
		go func() { found[i] <- usable(s.r.health.Check(checkCtx, shard)) }()
	}
	for i, shard := range order {
		if !<-found[i] {
			continue
		}
		lease, err := s.try(ctx, shard, len(order)-i)
		if lease != nil || err != nil {
			return lease, err
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, s.unavailable()
}

func (s *search) unavailable() error {
	e := &UnavailableError{Group: s.route.Group, Attempts: s.attempts, Cause: ErrUnavailable}
	if s.exactly {
		e.Shard = s.route.Shard
	}
	if n := len(s.attempts); n > 0 && s.attempts[n-1].Verdict == VerdictBusy {
		e.Cause = ErrBusy
	}
	return e
}

// served counts and tells that a request is served by another shard than its
// route came with, and marks the lease if the route should not follow.
func (s *search) served(ctx context.Context, l *Lease) {
	from, to, observer := s.route.Shard, l.Shard(), s.r.cfg.Observer
	switch {
	case s.misplaced != "":
		l.detour = s.layout.pool(s.misplaced) == nil && s.r.health.Known(s.misplaced)
		l.pool.counter.reassigned.Add(1)
		if observer.Reassigned != nil {
			observer.Reassigned(s.misplaced, to)
		}
	case !s.picked && from != to:
		l.detour = s.mayBeOursAlone(ctx, from)
		left := s.layout.pool(from)
		left.leave()
		left.counter.rotatedAway.Add(1)
		if observer.Rotated != nil {
			observer.Rotated(from, to)
		}
	}
}

// mayBeOursAlone reports whether what speaks against a shard may be this
// instance's trouble: its suspicion, once settled, was unfounded, or a witness
// contradicts it. Nor is anybody moved by hearsay: the shard is looked at, and
// whoever comes after that goes by what was seen.
func (s *search) mayBeOursAlone(ctx context.Context, shard string) bool {
	ctx, cancel := context.WithDeadline(ctx, s.deadline)
	defer cancel()
	v := s.r.health.Settle(ctx, shard)
	if v.Hearsay {
		s.r.health.Look(shard)
		return true
	}
	return v.Contested || usable(v) && !drained(v)
}
