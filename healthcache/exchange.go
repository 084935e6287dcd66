package healthcache

import "time"

// What passes between the board and Redis: the refresher brings readings and
// leases in, the reporter takes records out.

// moves notes which orders were given before a reading.
func (b *board) moves() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	moves := make(map[string]int, len(b.shards))
	for shard, k := range b.shards {
		moves[shard] = k.drainMoves
	}
	return moves
}

// absorb takes in a reading, and returns the shards whose lease is to be taken
// or extended.
func (b *board) absorb(r reading, moves map[string]int) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, redis := time.Now(), newClock(r.clock, b.cfg.life())
	var wanted []string
	all := make([]*knowledge, 0, len(b.shards))
	for _, shard := range b.cfg.Shards {
		k, keys := b.shards[shard], r.shards[shard]
		k.absorb(keys, redis, now, b.token, moves[shard])
		if k.wantsLease(keys.lease, now, b.cfg.life()) {
			wanted = append(wanted, shard)
		}
		if k.alone {
			k.nudge()
		}
		all = append(all, k)
	}
	b.publishLocked(now, all...)
	return wanted
}

// deaf notes that Redis cannot be read.
func (b *board) deaf() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.shards {
		k.alone = true
		k.nudge()
	}
}

// held takes in which leases are this instance's.
func (b *board) held(held map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for shard, mine := range held {
		k := b.shards[shard]
		if mine && !k.lease {
			k.nudge()
		}
		k.lease = mine
		b.announceLocked(k)
	}
}

// leases lists the shards whose lease this instance holds.
func (b *board) leases() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var mine []string
	for shard, k := range b.shards {
		if k.lease {
			mine = append(mine, shard)
		}
	}
	return mine
}

// outgoing takes the results that wait to be written.
func (b *board) outgoing() []report {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	var out []report
	for _, k := range b.shards {
		if k.lease && k.unreported && k.own.fresh(now, b.cfg.life()) {
			k.unreported = false
			out = append(out, k.record(now))
		}
	}
	return out
}

// written takes in what became of the results: their "since", or an empty text
// where the lease is another's by now.
func (b *board) written(reports []report, since map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range reports {
		text, answered := since[r.shard]
		if !answered {
			continue
		}
		k := b.shards[r.shard]
		if text == "" {
			k.lease = false
			continue
		}
		k.shared = shared{state: r.status.State, since: text}
	}
}
