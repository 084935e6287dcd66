package healthcache

import (
	"maps"
	"slices"
	"time"
)

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

// absorb takes in a reading, and returns the shards whose lease is to be taken.
func (b *board) absorb(r reading, moves map[string]int) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, redis := time.Now(), newClock(r.clock, b.cfg.life())
	var wanted []string
	read := make([]*knowledge, 0, len(r.shards))
	for shard, keys := range r.shards {
		k := b.shards[shard]
		if k == nil {
			continue // not watched any more
		}
		read = append(read, k)
		if r.generation != b.inbox.generation {
			keys.drain.doubtAbsence() // Redis has lost everything since the beat
		}
		was := k.fleet.status.State
		k.absorb(keys, redis, now, b.cfg.life(), b.token, moves[shard])
		b.announceLocked(k)
		if k.wantsLease(keys.lease, now, b.cfg.life()) && !k.lease {
			wanted = append(wanted, shard)
		}
		if k.alone {
			k.nudge()
		}
		b.doubtLocked(k, was, now)
	}
	b.publishLocked(now, read...)
	b.foreign.learn(r.foreign, redis)
	for shard, health := range r.foreign {
		if !health.failed && !b.foreign.has(shard) {
			delete(b.inbox.foreign, shard) // it makes room; whoever probes it later says so again
		}
	}
	return wanted
}

// doubtLocked looks for itself when the fleet says that a shard went down which
// this instance uses with success.
func (b *board) doubtLocked(k *knowledge, was State, now time.Time) {
	k.used = k.lastUse()
	if was == Down || k.fleet.status.State != Down || !k.usedLately(now, b.cfg.life()) || k.ownCounts(now, b.cfg.life()) {
		return
	}
	if k.suspect == nil {
		k.suspect = &suspicion{reason: "found down by " + k.fleet.status.By, since: now}
	}
	k.ask().shorten(now, b.cfg.SuspicionTimeout)
}

// deaf notes that Redis cannot be read.
func (b *board) deaf() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.shards {
		k.alone = true
		k.nudge()
	}
	b.publishLocked(time.Now(), slices.Collect(maps.Values(b.shards))...)
}

// held takes in which leases are this instance's.
func (b *board) held(held map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for shard, mine := range held {
		k := b.shards[shard]
		if k == nil {
			continue // not watched any more: the lease ends by itself
		}
		if !mine {
			k.lose()
			continue
		}
		if !k.lease {
			k.nudge()
		}
		k.lease = true
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
		if k.lease && k.post.due && k.own.fresh(now, b.cfg.life()) {
			k.post.due, k.post.renew = false, false
			out = append(out, k.record(now))
		}
	}
	return out
}

// testimonies takes the words that wait to be written.
func (b *board) testimonies() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	words := map[string]string{}
	for shard, k := range b.shards {
		if k.testimony != "" {
			words[shard], k.testimony = k.testimony, ""
		}
	}
	return words
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
		if k == nil {
			continue // not watched any more
		}
		if text == "" {
			k.lose()
			continue
		}
		sign := signature(r.status)
		if sign != k.post.written {
			b.news[r.shard] = true
		}
		k.post.state, k.post.since, k.post.written = r.status.State, text, sign
	}
}

// takeNews returns the shards of which the fleet is to be told, and forgets
// them; keepNews gives them back when that failed.
func (b *board) takeNews() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	news := slices.Sorted(maps.Keys(b.news))
	clear(b.news)
	return news
}

func (b *board) keepNews(shards []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, shard := range shards {
		b.news[shard] = true
	}
}
