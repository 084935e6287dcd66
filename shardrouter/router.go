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
	cfg    Config                 // its Shards are the layout's
	layout atomic.Pointer[layout] // of requests that begin now
	health *healthcache.Cache
	assign *assigner
	prover *prover // nil unless markers prove something
	closed atomic.Bool
	// holdsEnded: EndHolds was called.
	holdsEnded atomic.Bool

	life     context.Context // ends with the router
	stop     context.CancelFunc
	watching sync.WaitGroup // see watch, purge and retire

	reloading chan struct{} // has room for the one Reload that runs, or Close for a moment
}

// New starts a router: one pool and one prober per shard. A shard that is down
// does not make it fail; a malformed Config does, with every fault named.
func New(cfg Config) (*Router, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	shards := cfg.Shards
	cfg.Shards = nil
	r := &Router{cfg: cfg, reloading: make(chan struct{}, 1)}
	r.life, r.stop = context.WithCancel(context.Background())
	if cfg.Copies == CopiesMarker {
		r.prover = newProver(r)
	}
	pools, err := r.openPools(shards)
	if err != nil {
		return nil, err
	}
	r.publish(newLayout(shards, pools, nil))
	health, err := healthcache.New(healthcache.Config{
		Shards:       r.Shards(),
		Probe:        r.probe,
		Redis:        cfg.Redis,
		Interval:     cfg.HealthInterval,
		ProbeTimeout: cfg.ProbeTimeout,
		Instance:     cfg.Instance,
		Logger:       cfg.Logger,
		OnChange:     r.changed,
		Nodes:        nodesOf(pools),
		OnWriter:     r.writerChanged,
	})
	if err != nil {
		closePools(pools)
		return nil, err
	}
	r.health = health
	r.assign = newAssigner(cfg.Policy, r.inUse)
	health.Start()
	r.watching.Go(func() { r.watch(r.life) })
	if r.prover != nil {
		r.watching.Go(func() { r.prover.run(r.life) })
	}
	for _, p := range pools {
		r.purge(p)
	}
	return r, nil
}

// purge has old outcome rows deleted for as long as the pool is used.
func (r *Router) purge(p *pool) {
	r.watching.Go(func() { (&purger{router: r, pool: p}).run(p.used) })
}

// openPools returns a pool for each of shards, or none and an error.
func (r *Router) openPools(shards []Shard) (map[string]*pool, error) {
	pools := make(map[string]*pool, len(shards))
	for _, s := range shards {
		p, err := newPool(s, &r.cfg, requestEvidence{r})
		if err != nil {
			closePools(pools)
			return nil, fmt.Errorf("shardrouter: shard %s: %w", s.Name, err)
		}
		p.hold = newHold(r.holdConfig(s.Name))
		p.used, p.quit = context.WithCancel(r.life)
		pools[s.Name] = p
	}
	return pools, nil
}

// publish has the requests that begin from now on work with at.
func (r *Router) publish(at *layout) {
	at.adopt()
	r.layout.Store(at)
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
	for _, p := range r.pools() {
		p.finish()
	}
	r.stop()
	r.reloading <- struct{}{} // a Reload that runs sees that, and ends
	defer func() { <-r.reloading }()
	r.watching.Wait()
	r.health.Close()
	closePools(r.pools())
	return nil
}

// EndHolds answers the requests that are held, now and from now on, with
// ErrClosed; everything else goes on. Call it when a shutdown begins, so that
// nobody waits for a database while the server waits for its requests:
//
//	server.RegisterOnShutdown(router.EndHolds)
func (r *Router) EndHolds() {
	r.holdsEnded.Store(true)
	for _, m := range r.layout.Load().members {
		m.pool.hold.shutDown()
	}
}

// pools are those of the present layout.
func (r *Router) pools() map[string]*pool {
	members := r.layout.Load().members
	pools := make(map[string]*pool, len(members))
	for shard, m := range members {
		pools[shard] = m.pool
	}
	return pools
}

func closePools(pools map[string]*pool) {
	for _, p := range pools {
		p.close()
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
	for _, s := range r.layout.Load().shards {
		if !slices.Contains(groups, s.Group) {
			groups = append(groups, s.Group)
		}
	}
	return groups
}

// Shards lists the configured shards in rotation order.
func (r *Router) Shards() []string {
	return namesOf(r.layout.Load().shards)
}

// GroupOf returns the group of a shard; false for an unknown shard.
func (r *Router) GroupOf(shard string) (string, bool) {
	m, ok := r.layout.Load().members[shard]
	if !ok {
		return "", false
	}
	return m.Group, true
}

func namesOf(shards []Shard) []string {
	names := make([]string, len(shards))
	for i, s := range shards {
		names[i] = s.Name
	}
	return names
}

// Acquire lends a connection of exactly this shard, for work without a
// session: one that has applied what its cluster had committed by then. A shard
// that is known to be down is probed first, and waited for where its OnFailure
// says hold.
func (r *Router) Acquire(ctx context.Context, shard string) (*Lease, error) {
	s := r.newSearch(ctx, Route{Shard: shard}, "")
	s.exactly = true
	return s.run(ctx)
}

// Each calls fn with a connection of every shard in turn, for jobs and
// migrations, and joins the errors, each with the name of its shard.
func (r *Router) Each(ctx context.Context, fn func(ctx context.Context, shard string, conn *sql.Conn) error) error {
	var errs []error
	for _, s := range r.layout.Load().shards {
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
	at := r.layout.Load()
	stats := make([]Stats, 0, len(at.shards))
	for _, s := range at.shards {
		st := at.members[s.Name].pool.stats()
		st.State = r.health.View(s.Name).State
		st.Alarm = r.health.View(s.Name).Alarm
		st.Copies = r.copiesOf(at, s)
		stats = append(stats, st)
	}
	return stats
}

// inUse counts the leases of a shard that are out; none for an unknown one.
func (r *Router) inUse(shard string) int {
	if p := r.layout.Load().pool(shard); p != nil {
		return int(p.bulkhead.inUse.Load())
	}
	return 0
}

// probe is the cache's ProbeFunc. A shard that fails it while it is suspected,
// or known to be down, is dead for this instance: what hangs on it is cut.
// One failed probe of a shard that is up only makes it suspect.
func (r *Router) probe(ctx context.Context, shard string) healthcache.Result {
	p := r.layout.Load().probed(shard)
	if p == nil {
		return healthcache.Result{State: healthcache.Down, Reason: "the shard was removed"}
	}
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
	at := r.layout.Load()
	if m := at.members[c.Shard]; m != nil { // it neither comes nor goes
		r.heed(at, m, c)
	}
	if f := r.cfg.Observer.Health; f != nil {
		f(c)
	}
}

// heed has the shard's pool, and those who wait, act on a change of its state.
func (r *Router) heed(at *layout, m *member, c healthcache.Change) {
	p := m.pool
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
		r.tellDrained(m.Group)
	case healthcache.Up:
		at.groups[m.Group].news.spread()
	}
}

// tellDrained says when the drains leave a group no shard to go to: it keeps
// serving, which may not be what the operator had in mind.
func (r *Router) tellDrained(group string) {
	health := r.health.Snapshot()
	for _, s := range r.layout.Load().groups[group].ring {
		if !drained(health[s.Name]) {
			return
		}
	}
	r.cfg.Logger.Warn("every shard of the group is drained, it keeps serving", "group", group)
}
