package shardrouter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// retireSlack is how much longer than AcquireTimeout a pool stays open that no
// request finds any more: those that had found it are through by then.
const retireSlack = time.Second

// Reload replaces the shards by those of cfg while requests are served: shards
// are added and removed, and get other nodes, weights, groups, sizes and
// OnFailure. It is all or nothing: the error names everything that is wrong,
// and then nothing has changed.
//
//   - A shard that stays keeps its pool with its connections. One whose DSN
//     changed gets new ones: leases that are out finish on the old.
//   - A new shard is probed, and given to Config.Prepare, before it takes players,
//     which Reload waits for; one that is down then takes none until it is up.
//     It is not prepared.
//   - A removed shard takes no more players: running requests finish there, the
//     next ones of its players get another shard of the group; see [Router.Lease].
//   - Every group keeps at least one of the shards that it has. To replace all of
//     them, add the new ones, and remove the old ones by another Reload.
//
// Redis, Instance, Logger, Observer and Classify of cfg are not looked at. All
// other fields have to be as they were; they need a new Router.
//
// ctx bounds all of that; when it ends first, nothing has changed.
// After Close the error is ErrClosed. Calls wait for each other.
func (r *Router) Reload(ctx context.Context, cfg Config) error {
	cfg = cfg.withDefaults()
	if err := errors.Join(cfg.validate(), r.cfg.fixed(cfg), keepsGroups(r.layout.Load().shards, cfg.Shards)); err != nil {
		return err
	}
	select {
	case r.reloading <- struct{}{}:
		defer func() { <-r.reloading }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if r.closed.Load() {
		return ErrClosed
	}
	before := r.layout.Load()
	// Once more: another Reload may have come first.
	if err := keepsGroups(before.shards, cfg.Shards); err != nil {
		return err
	}
	c := before.compare(cfg.Shards)
	if !c.any() {
		r.cfg.Logger.Info("shards reloaded, nothing has changed")
		return nil
	}
	fresh, err := r.openPools(c.opened(cfg.Shards))
	if err != nil {
		return err
	}
	newLayout(c.opened(cfg.Shards), fresh, before).adopt()
	if err := r.introduce(ctx, before, fresh, c.added, cfg.Prepare); err != nil {
		closePools(fresh)
		return err
	}
	r.switchTo(before, cfg.Shards, fresh)
	r.cfg.Logger.Info("shards reloaded", "added", c.added, "removed", c.removed, "other_nodes", c.moved, "other_settings", c.settings)
	return nil
}

// introduce has the shards of fresh pools probed before they are used, the
// added ones beside those that are there, and these prepared. After an error it
// is as before.
func (r *Router) introduce(ctx context.Context, before *layout, fresh map[string]*pool, added []string, prepare prepareFunc) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)()
	r.layout.Store(before.withComing(fresh))
	probed := r.pools()
	maps.Copy(probed, fresh)
	err := r.health.SetShards(slices.Concat(namesOf(before.shards), added), nodesOf(probed))
	if err == nil {
		var probes sync.WaitGroup
		for shard := range fresh {
			probes.Go(func() { r.health.Check(ctx, shard) })
		}
		probes.Wait()
		err = ctx.Err()
	}
	for _, shard := range added {
		if err == nil && prepare != nil && usable(r.health.View(shard)) {
			err = r.prepare(ctx, fresh[shard], prepare)
		}
	}
	if r.closed.Load() {
		err = ErrClosed
	}
	if err != nil {
		r.layout.Store(before)
		_ = r.health.SetShards(namesOf(before.shards), nodesOf(r.pools())) // they were watched before
	}
	return err
}

// prepareFunc is Config.Prepare.
type prepareFunc func(ctx context.Context, shard string, conn *sql.Conn) error

// prepare calls prepare with a connection of a pool that is not used yet.
func (r *Router) prepare(ctx context.Context, p *pool, prepare prepareFunc) error {
	ctx, cancel := context.WithCancel(Track(ctx))
	defer cancel()
	limit := r.cfg.AcquireTimeout
	lease, err := p.lend(ctx, visitor{deadline: time.Now().Add(limit)}, limit)
	if err == nil {
		defer lease.ReleaseAfter(ctx, cancel)
		err = prepare(ctx, p.name, lease.Conn())
	}
	if err != nil {
		return fmt.Errorf("prepare shard %s: %w", p.name, err)
	}
	return nil
}

// switchTo has requests work with shards from now on, and retires the pools
// that they do not use.
func (r *Router) switchTo(before *layout, shards []Shard, fresh map[string]*pool) {
	pools := make(map[string]*pool, len(shards))
	for _, s := range shards {
		pools[s.Name] = before.pool(s.Name)
		if p := fresh[s.Name]; p != nil {
			p.caughtUp.Store(-1) // what was written by way of the old nodes
			pools[s.Name] = p
		}
	}
	at := newLayout(shards, pools, before)
	for shard, m := range before.members {
		if at.pool(shard) != m.pool {
			m.pool.finish()
			m.pool.heir.Store(at.pool(shard))
		}
	}
	r.publish(at)
	_ = r.health.SetShards(namesOf(shards), nodesOf(pools)) // the names are valid, and Close waits
	for shard, p := range fresh {
		p.noteState(r.health.View(shard).State)
		r.purge(p)
	}
	for shard, m := range before.members {
		if at.pool(shard) != m.pool {
			r.retire(m.pool)
		}
	}
	for _, g := range at.groups {
		g.news.spread()
	}
	r.assign.keep(at)
	if r.holdsEnded.Load() {
		r.EndHolds()
	}
}

// retire closes a pool that no layout has any more, when the requests that
// found it before are through. Leases that are out then stay usable.
func (r *Router) retire(p *pool) {
	p.retire()
	r.watching.Go(func() {
		sleep(r.life, r.cfg.AcquireTimeout+retireSlack)
		p.close()
	})
}

// retire lets those go who wait for the shard, and keeps no connection that
// comes back.
func (p *pool) retire() {
	p.quit()
	p.leave()
	p.hold.dismiss()
	p.retired.Store(true)
	p.dropIdle()
}

// changes is what a reload changes, by the names of the shards.
type changes struct {
	added, removed []string
	moved          []string // have another DSN
	settings       []string // have other settings
	reordered      bool
}

func (c changes) any() bool {
	return len(c.added)+len(c.removed)+len(c.moved)+len(c.settings) > 0 || c.reordered
}

// opened returns those of shards that need a pool of their own.
func (c changes) opened(shards []Shard) []Shard {
	return slices.DeleteFunc(slices.Clone(shards), func(s Shard) bool {
		return !slices.Contains(c.added, s.Name) && !slices.Contains(c.moved, s.Name)
	})
}

// compare tells what is other in shards than in l.
func (l *layout) compare(shards []Shard) (c changes) {
	names := namesOf(shards)
	for _, s := range shards {
		m := l.members[s.Name]
		switch {
		case m == nil:
			c.added = append(c.added, s.Name)
			continue
		case !m.pool.isOf(s.DSN):
			c.moved = append(c.moved, s.Name)
		case m.Shard != s.withoutAccount():
			c.settings = append(c.settings, s.Name)
		}
	}
	for _, s := range l.shards {
		if !slices.Contains(names, s.Name) {
			c.removed = append(c.removed, s.Name)
		}
	}
	c.reordered = !slices.Equal(names, namesOf(l.shards))
	return c
}

// keepsGroups checks that every group keeps one of its shards.
func keepsGroups(before, after []Shard) error {
	var errs []error
	kept := make(map[string]bool)
	for _, s := range before {
		kept[s.Group] = kept[s.Group] || slices.ContainsFunc(after, func(a Shard) bool { return a.Name == s.Name && a.Group == s.Group })
	}
	for _, s := range before {
		if kept[s.Group] {
			continue
		}
		kept[s.Group] = true // and told once
		errs = append(errs, fmt.Errorf("group %s would lose its last shard, such as %s, and its players with it: keep one; to replace all, add the new ones first and reload twice", s.Group, s.Name))
	}
	return errors.Join(errs...)
}

// fixed names every field in which c cannot become other while a router runs.
func (c Config) fixed(other Config) error {
	var errs []error
	for _, f := range []struct {
		name       string
		here, want any
	}{
		{"Policy (SHARD_POLICY)", c.Policy, other.Policy},
		{"Rotation (SHARD_ROTATION)", c.Rotation, other.Rotation},
		{"RotateTo (SHARD_ROTATE_TO)", c.RotateTo, other.RotateTo},
		{"Copies (SHARD_COPIES)", c.Copies, other.Copies},
		{"ConnectTimeout (SHARD_CONNECT_TIMEOUT)", c.ConnectTimeout, other.ConnectTimeout},
		{"ReadTimeout (SHARD_READ_TIMEOUT)", c.ReadTimeout, other.ReadTimeout},
		{"WriteTimeout (SHARD_WRITE_TIMEOUT)", c.WriteTimeout, other.WriteTimeout},
		{"ProbeTimeout (SHARD_PROBE_TIMEOUT)", c.ProbeTimeout, other.ProbeTimeout},
		{"AcquireTimeout (SHARD_ACQUIRE_TIMEOUT)", c.AcquireTimeout, other.AcquireTimeout},
		{"BusyTimeout", c.BusyTimeout, other.BusyTimeout},
		{"MaxWaiting", c.MaxWaiting, other.MaxWaiting},
		{"Ramp (SHARD_RAMP)", c.Ramp, other.Ramp},
		{"HoldTimeout (SHARD_HOLD_TIMEOUT)", c.HoldTimeout, other.HoldTimeout},
		{"HoldMax (SHARD_HOLD_MAX)", c.HoldMax, other.HoldMax},
		{"HealthInterval (SHARD_HEALTH_INTERVAL)", c.HealthInterval, other.HealthInterval},
		{"Failback (SHARD_FAILBACK)", c.Failback, other.Failback},
		{"OutcomeRetention (SHARD_OUTCOME_RETENTION)", c.OutcomeRetention, other.OutcomeRetention},
	} {
		if f.here != f.want {
			errs = append(errs, fmt.Errorf("%s is %v and cannot change to %v at run time: start anew for that", f.name, f.here, f.want))
		}
	}
	return errors.Join(errs...)
}
