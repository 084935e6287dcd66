package shardrouter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/route"
)

// Route says which shard serves a session: its Group, Shard, Home and Epoch.
type Route = route.Route

// Router lends pooled connections of many shards. Its methods are safe for use
// by several goroutines.
type Router struct {
	cfg    Config
	pools  map[string]*pool
	groups map[string][]Shard // in rotation order
	news   map[string]*news   // by group
	health *healthcache.Cache
	assign *assigner
	closed atomic.Bool

	stop     context.CancelFunc
	watching sync.WaitGroup // see watch and purger
}

// New starts a router: one pool and one prober per shard. A shard that is down
// does not make it fail; a malformed Config does, with every fault named.
func New(cfg Config) (*Router, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	r := &Router{cfg: cfg, pools: map[string]*pool{}, groups: map[string][]Shard{}, news: map[string]*news{}}
	if err := r.openPools(); err != nil {
		return nil, err
	}
	health, err := healthcache.New(healthcache.Config{
		Shards:       r.Shards(),
		Probe:        r.probe,
		Redis:        cfg.Redis,
		Interval:     cfg.HealthInterval,
		ProbeTimeout: cfg.ProbeTimeout,
		Instance:     cfg.Instance,
		Logger:       cfg.Logger,
		OnChange:     r.changed,
	})
	if err != nil {
		r.closePools()
		return nil, err
	}
	r.health = health
	r.assign = newAssigner(cfg.Policy, r.inUse)
	health.Start()
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	r.watching.Go(func() { r.watch(ctx) })
	for _, p := range r.pools {
		r.watching.Go(func() { (&purger{router: r, pool: p}).run(ctx) })
	}
	return r, nil
}

func (r *Router) openPools() error {
	groups := make(map[string]*passages)
	for i, s := range r.cfg.Shards {
		if groups[s.Group] == nil {
			groups[s.Group] = new(passages)
		}
		p, err := newPool(s, &r.cfg, requestEvidence{r}, groups[s.Group])
		if err != nil {
			r.closePools()
			return fmt.Errorf("shardrouter: shard %s: %w", s.Name, err)
		}
		p.hold = newHold(r.holdConfig(s.Name))
		r.pools[s.Name] = p
		// From here on only the driver needs the account; a Router that is
		// printed must not show it, and fmt calls no methods of private fields.
		p.shard.DSN, r.cfg.Shards[i].DSN = "", ""
		r.groups[s.Group] = append(r.groups[s.Group], p.shard)
		r.news[s.Group] = newNews()
	}
	return nil
}

func (r *Router) holdConfig(shard string) holdConfig {
	return holdConfig{
		most:  r.cfg.HoldMax,
		limit: r.cfg.HoldTimeout,
		pause: r.cfg.HealthInterval / 4,
		prove: func(ctx context.Context) bool { return usable(r.health.Check(ctx, shard)) },
		log:   r.cfg.Logger.With("shard", shard),
	}
}

// Close stops the probers and closes the pools. Leases that are out stay
// usable until they are released; new ones are refused with ErrClosed. It is
// idempotent, and its error is always nil.
func (r *Router) Close() error {
	if !r.closed.CompareAndSwap(false, true) {
		return nil
	}
	r.EndHolds()
	r.stop()
	r.watching.Wait()
	r.health.Close()
	r.closePools()
	return nil
}

// EndHolds answers the requests that are held, now and from now on, with
// ErrClosed; everything else goes on. Call it when a shutdown begins, so that
// nobody waits for a database while the server waits for its requests:
//
//	server.RegisterOnShutdown(router.EndHolds)
func (r *Router) EndHolds() {
	for _, p := range r.pools {
		p.hold.shutDown()
	}
}

// closePools closes every pool. What a connection says to its end is of no
// use: it is gone either way.
func (r *Router) closePools() {
	for _, p := range r.pools {
		p.hold.close()
		_ = p.db.Close()
	}
}

// Format prints the names of the shards, whatever the verb: what else a router
// holds changes while it is read.
func (r *Router) Format(s fmt.State, _ rune) {
	_, _ = fmt.Fprintf(s, "shardrouter.Router%v", r.Shards())
}

// Health gives access to what is known of the shards, and to drains.
func (r *Router) Health() *healthcache.Cache { return r.health }

// Groups lists the configured groups in the order of their first shard.
func (r *Router) Groups() []string {
	var groups []string
	for _, s := range r.cfg.Shards {
		if !slices.Contains(groups, s.Group) {
			groups = append(groups, s.Group)
		}
	}
	return groups
}

// Shards lists the configured shards in rotation order.
func (r *Router) Shards() []string {
	names := make([]string, len(r.cfg.Shards))
	for i, s := range r.cfg.Shards {
		names[i] = s.Name
	}
	return names
}

// GroupOf returns the group of a shard; false for an unknown shard.
func (r *Router) GroupOf(shard string) (string, bool) {
	p, ok := r.pools[shard]
	if !ok {
		return "", false
	}
	return p.shard.Group, true
}

// Acquire lends a connection of exactly this shard, for work without a
// session: one that has applied what its cluster had committed by then. A shard
// that is known to be down is probed first, and waited for where its OnFailure
// says hold.
func (r *Router) Acquire(ctx context.Context, shard string) (*Lease, error) {
	p, ok := r.pools[shard]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrUnknownShard, shard)
	}
	s := r.newSearch(ctx, Route{Group: p.shard.Group, Shard: shard}, []Shard{p.shard}, "")
	s.arriving = true
	s.holds.unwanted = p.shard.OnFailure == OnFailureRotate
	return s.run(ctx)
}

// Each calls fn with a connection of every shard in turn, for jobs and
// migrations, and joins the errors, each with the name of its shard.
func (r *Router) Each(ctx context.Context, fn func(ctx context.Context, shard string, conn *sql.Conn) error) error {
	var errs []error
	for _, s := range r.cfg.Shards {
		if err := r.one(ctx, s.Name, fn); err != nil {
			errs = append(errs, fmt.Errorf("shard %s: %w", s.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (r *Router) one(ctx context.Context, shard string, fn func(context.Context, string, *sql.Conn) error) error {
	ctx, cancel := context.WithCancel(Track(ctx))
	defer cancel()
	lease, err := r.Acquire(ctx, shard)
	if err != nil {
		return err
	}
	defer lease.ReleaseAfter(ctx, cancel)
	return fn(ctx, shard, lease.Conn())
}

// Stats returns a snapshot of every pool in rotation order.
func (r *Router) Stats() []Stats {
	stats := make([]Stats, 0, len(r.cfg.Shards))
	for _, s := range r.cfg.Shards {
		st := r.pools[s.Name].stats()
		st.State = r.health.View(s.Name).State
		st.Copies = r.copiesOf(s.Name)
		stats = append(stats, st)
	}
	return stats
}

func (r *Router) inUse(shard string) int { return int(r.pools[shard].bulkhead.inUse.Load()) }

// probe is the cache's ProbeFunc. A shard that fails it while it is suspected,
// or known to be down, is dead for this instance: what hangs on it is cut.
// One failed probe of a shard that is up only makes it suspect.
func (r *Router) probe(ctx context.Context, shard string) healthcache.Result {
	p := r.pools[shard]
	p.heedDrain()
	slow := time.AfterFunc(suspectAfter, func() { r.suspectIfStuck(p) })
	defer slow.Stop()
	p.clusters.learn(r.health.View(shard).Nodes)
	res := p.probe(ctx)
	if res.State == healthcache.Down && !r.closed.Load() {
		switch r.health.View(shard).State {
		case healthcache.Suspect, healthcache.Down:
			p.cut()
		}
	}
	return res
}

// changed is told of every change of a shard's state. That another instance
// found a shard down is a reason to look, not to cut running work.
func (r *Router) changed(c healthcache.Change) {
	p := r.pools[c.Shard]
	p.clusters.learn(c.Prev.Nodes)
	p.noteState(c.Next.State)
	if isUsable(c.Next.State) {
		p.bulkhead.ramping().begin()
	} else {
		p.fell()
	}
	if c.Next.State == healthcache.Down && !c.Own && p.bulkhead.inUse.Load() > 0 {
		r.health.Suspect(c.Shard, "found down by "+c.Next.By)
	}
	if c.Next.State == healthcache.ReadOnly {
		p.dropIdle()
	}
	p.heedDrain()
	switch c.Next.State {
	case healthcache.Draining:
		r.tellDrained(p.shard.Group)
	case healthcache.Up:
		r.news[p.shard.Group].spread()
	}
	if f := r.cfg.Observer.Health; f != nil {
		f(c)
	}
}

// tellDrained says when the drains leave a group no shard to go to: it keeps
// serving, which may not be what the operator had in mind.
func (r *Router) tellDrained(group string) {
	health := r.health.Snapshot()
	for _, s := range r.groups[group] {
		if !drained(health[s.Name]) {
			return
		}
	}
	r.cfg.Logger.Warn("every shard of the group is drained, it keeps serving", "group", group)
}
