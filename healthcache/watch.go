package healthcache

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// probing is a prober at work.
type probing struct {
	stop context.CancelFunc
	done chan struct{} // closed when its goroutine has ended
}

// SetShards has the cache watch these shards from now on, of which those of
// several nodes have them in nodes; see [Config]. What is known of
// those that it watched before stays; a new one is Unknown until it has been
// looked at, which begins at once: see Check. For one that is gone the running
// probe is cancelled and waited for, the lease handed back, and whoever waits
// in Settle or Check is let go. Redis delays that by an exchange at most. The
// error names every name that is not allowed, and then nothing changes; after
// Close it is ErrClosed.
func (c *Cache) SetShards(shards []string, nodes map[string][]string) error {
	if err := errors.Join(validateShards(shards), validateNodes(shards, nodes)); err != nil {
		return err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	gone, added, leases, err := c.board.watch(shards)
	if err != nil {
		return err
	}
	c.nodes.Store(&nodes)
	c.readNow(c.ledger.watch(ledgerKeys(nodes)))
	c.stopProbers(gone)
	if len(leases) > 0 {
		ctx, cancel := context.WithTimeout(c.running, c.cfg.refreshTimeout())
		defer cancel()
		// A lease that could not be handed back ends by itself.
		_ = c.fleet.release(ctx, leases)
	}
	if c.running != nil {
		c.startProbers(added)
	}
	return nil
}

// readNow reads keys of the ledger ahead of the next beat, so that the first
// probe of a shard knows its record. What cannot be read is left to the beats.
func (c *Cache) readNow(keys []string) {
	if c.fleet == nil || c.running == nil || len(keys) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(c.running, c.cfg.refreshTimeout())
	defer cancel()
	began := time.Now()
	cells, _, _ := c.fleet.readCells(ctx, keys) // each tells whether it was read
	c.ledger.absorbCells(keys, cells, began)
}

// startProbers has shards probed. It is called under changing.
func (c *Cache) startProbers(shards []string) {
	for _, shard := range shards {
		ctx, cancel := context.WithCancel(c.running)
		at := &probing{stop: cancel, done: make(chan struct{})}
		p := &prober{board: c.board, probe: c.cfg.Probe, know: c.board.knowledgeOf(shard)}
		p.accuse = func() { c.working.Go(func() { c.accuse(ctx, shard) }) }
		p.confirmed = func() time.Time { return c.ledger.entry(writerKey(shard)).at }
		c.working.Go(func() {
			defer close(at.done)
			p.run(ctx)
		})
		c.probers[shard] = at
	}
}

// stopProbers ends the probing of shards, and returns when none of them is
// probed any more. It is called under changing.
func (c *Cache) stopProbers(shards []string) {
	for _, shard := range shards {
		if at := c.probers[shard]; at != nil {
			at.stop()
		}
	}
	for _, shard := range shards {
		if at := c.probers[shard]; at != nil {
			<-at.done
			delete(c.probers, shard)
		}
	}
}

// watched lists the shards that are watched. It must not be written to.
func (b *board) watched() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.order
}

func (b *board) knowledgeOf(shard string) *knowledge {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.shards[shard]
}

// watch replaces the shards that are watched. It names those that are gone,
// those that are new, and those of the gone whose lease is to be handed back.
func (b *board) watch(shards []string) (gone, added, leases []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, nil, nil, ErrClosed
	}
	now, before := time.Now(), b.shards
	for _, shard := range b.order {
		if slices.Contains(shards, shard) {
			continue
		}
		k := before[shard]
		gone = append(gone, shard)
		if k.lease {
			leases = append(leases, shard)
		}
		b.forgetLocked(k)
	}
	added = b.watchLocked(shards, now)
	signal(b.hints) // for the keys of the new ones
	return gone, added, leases, nil
}

// watchLocked has these shards watched, and names those that were not yet.
func (b *board) watchLocked(shards []string, now time.Time) (added []string) {
	next := make(map[string]*knowledge, len(shards))
	snap := make(Snapshot, len(shards))
	for _, shard := range shards {
		k := b.shards[shard]
		if k == nil {
			k = newKnowledge(shard, now, b.cfg.Redis == nil, newDamping(b.cfg.Interval))
			added = append(added, shard)
			delete(b.inbox.foreign, shard)
		}
		next[shard], snap[shard] = k, k.view
	}
	b.order, b.shards = slices.Clone(shards), next
	b.index.Store(&next)
	b.snapshot.Store(&snap)
	return added
}

// forgetLocked lets those go who wait for a shard that is watched no longer.
// Where there are other instances, they may know it still: until its key has
// been read it counts as theirs.
func (b *board) forgetLocked(k *knowledge) {
	if r := k.settle(); r != nil {
		close(r.done)
	}
	delete(b.news, k.shard)
	if b.inbox.members > 1 {
		b.inbox.mark(k.shard, false)
		b.foreign.add(k.shard)
	}
}

// add takes in a name. It is called under the board's lock.
func (n *names) add(name string) {
	next := map[string]struct{}{}
	if set := n.set.Load(); set != nil {
		next = maps.Clone(*set)
	}
	next[name] = struct{}{}
	n.set.Store(&next)
}
