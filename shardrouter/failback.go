package shardrouter

import (
	"context"
	"time"

	"github.com/shardhop/shardhop/healthcache"
)

// homecoming is all that follows from: whether a session goes back to its home.
type homecoming struct {
	route Route
	key   string // of the session
	home  Shard  // as configured; the zero Shard is not
	view  healthcache.View
	upFor time.Duration // how long home has been up without interruption
	// stable is how long it has to be up before the first session goes back;
	// 0: none does.
	stable time.Duration
}

// due reports whether it is time. A session goes back once, which its route
// remembers, and only to a shard that would take it as a new one. The sessions
// of one home go back one after the other, over as long again as home has had
// to be up, each at a moment that its key decides.
func (h homecoming) due() bool {
	switch {
	case h.stable <= 0 || h.route.Settled || h.route.Shard == h.route.Home:
		return false
	case h.home.Name != h.route.Home || h.home.Group != h.route.Group || h.home.Weight == WeightNone:
		return false
	case h.view.State != healthcache.Up || h.view.Contested || drained(h.view):
		return false
	}
	const whole = 1 << 53
	turn := float64(score(h.key, h.home.Name)%whole) / whole
	return h.upFor >= h.stable+time.Duration(turn*float64(h.stable))
}

// tryHome makes one attempt at the home of a session for which it is time to go
// back. Nobody has to: where home has no connection to spare, or gives none, the
// session is served where it is.
func (s *search) tryHome(ctx context.Context) *Lease {
	if s.r.cfg.Failback == 0 || s.route.Shard == s.route.Home || s.route.Shard == "" {
		return nil
	}
	home := s.layout.members[s.route.Home]
	if home == nil {
		return nil
	}
	p := home.pool
	way := homecoming{
		route: s.route, key: s.key, home: home.Shard, view: s.r.health.View(s.route.Home),
		upFor: p.upFor(), stable: s.r.cfg.Failback,
	}
	if !way.due() {
		return nil
	}
	share := min(s.r.cfg.ProbeTimeout, time.Until(s.deadline)/2)
	ends := time.Now().Add(share)
	lease, err := p.lendNow(ctx, share)
	if err == nil {
		err = s.arrive(ctx, lease, ends)
	}
	if err != nil {
		s.r.cfg.Logger.Info("no way home", "shard", s.route.Home, "error", err)
		return nil
	}
	lease.returned = true
	s.layout.pool(s.route.Shard).leave()
	p.counter.returned.Add(1)
	s.holder.add(lease)
	return lease
}

// upFor is how long the shard has been up without interruption, by what this
// instance knew; a suspicion that was unfounded is none.
func (p *pool) upFor() time.Duration {
	since := p.upSince.Load()
	if since == nil {
		return 0
	}
	return time.Since(*since)
}

// noteState keeps account of how long the shard has been up.
func (p *pool) noteState(s healthcache.State) {
	switch s {
	case healthcache.Suspect:
	case healthcache.Up:
		now := time.Now()
		p.upSince.CompareAndSwap(nil, &now)
	default:
		p.upSince.Store(nil)
	}
}
