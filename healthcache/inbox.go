package healthcache

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// fullReading is after how many beats everything is read again, whatever the
// change counter says.
const fullReading = 10

// maxForeign bounds the names that are kept of shards not watched here.
const maxForeign = 256

// inbox is what this instance knows of the fleet's news. The board's mutex
// guards it.
type inbox struct {
	seen       int64           // the change counter, as far as its news were read
	beats      int             // since everything was read
	members    int             // instances alive; 0: not known
	generation string          // of the fleet's keys
	marked     map[string]bool // shards to read again at the next beat
	foreign    map[string]bool // shards heard of that are not watched here
}

func newInbox() inbox {
	// The first beat reads everything.
	return inbox{seen: -1, beats: fullReading, marked: map[string]bool{}, foreign: map[string]bool{}}
}

// agenda is what a beat gives this instance to do.
type agenda struct {
	read    []string // shards whose keys are to be read
	foreign []string // shards not watched here whose health key is to be read
	asked   []string // shards to testify about that are not watched here
	lost    []lost   // drains to be written again before anything is read
	offered []offer  // leases to be taken over
	// swept are the shards of which the time alone is a reason to read them, with
	// what Redis's digests are made of if their keys are as they were; then they
	// are not to be read.
	swept []footprint
	// burdened: this instance holds more leases than its part.
	burdened bool
}

// instances returns how many instances live, as far as this one has heard.
func (b *board) instances() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.inbox.members, 1)
}

// holding returns what the next beat carries.
func (b *board) holding() carried {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.heldLocked()
	for i, t := range c.held {
		k := b.shards[t.shard]
		c.held[i].record, c.held[i].rtt = k.renewal(), k.own.status.RTT
	}
	return c
}

// watching returns what a look between two beats goes by.
func (b *board) watching() carried {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.heldLocked()
}

func (b *board) heldLocked() carried {
	c := carried{seen: b.inbox.seen, members: b.inbox.members, generation: b.inbox.generation}
	now := time.Now()
	for _, shard := range b.order {
		if k := b.shards[shard]; k.lease {
			c.held = append(c.held, tended{shard: shard, drained: k.drain.stands(now)})
		}
	}
	return c
}

// hear takes in what a beat brought, and says what is to be done about it.
func (b *board) hear(p pulse, moves map[string]int) agenda {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.inbox.members == 1 && p.members > 1 {
		b.retryLocked()
	}
	b.inbox.members = p.members
	reborn := b.inbox.generation != "" && b.inbox.generation != p.generation
	if reborn {
		b.inbox.beats = fullReading + 1 // and no digest instead
	}
	b.hearTendedLocked(p, moves, reborn, now)
	offered, asked := b.welcomeLocked(p.asked)
	a := agenda{offered: offered, asked: b.summonLocked(asked, now)}
	if reborn {
		a.lost = b.lostLocked(p, now)
	}
	if len(a.lost) > 0 {
		return a // nothing is read, nor taken for an undrain, before they are back
	}
	b.inbox.generation = p.generation
	a.read, a.foreign, a.swept = b.dueLocked(p, now)
	a.burdened = b.inbox.beats == 0 && b.burdenedLocked()
	return a
}

// retryLocked looks again at every death that this instance believed while there
// was nobody to ask, now that there is.
func (b *board) retryLocked() {
	for _, k := range b.shards {
		if k.found == Down {
			k.judged = time.Time{}
			k.ask()
		}
	}
}

// hearTendedLocked takes in what became of the leases, and looks for orders on
// the shards that this instance probes: it is the one who tells the fleet.
func (b *board) hearTendedLocked(p pulse, moves map[string]int, reborn bool, now time.Time) {
	for shard, t := range p.tended {
		k := b.shards[shard]
		if k == nil || !k.lease {
			continue // handed on, or not watched any more, while the beat was under way
		}
		k.tended(t)
		if !reborn && k.absorbDrain(t.drain, now, moves[shard]) {
			b.news[shard] = true
			k.post.due = true
		}
		b.announceLocked(k)
	}
}

// summonLocked has shards looked at that others ask about, and returns those
// that are not watched here.
func (b *board) summonLocked(asked []string, now time.Time) (unknown []string) {
	for _, shard := range asked {
		k := b.shards[shard]
		if k == nil {
			unknown = append(unknown, shard)
			continue
		}
		if b.closed {
			continue
		}
		k.used = k.lastUse()
		k.summon(now, b.cfg.SuspicionTimeout/2, b.cfg.pace(), b.cfg.SuspicionTimeout)
		b.announceLocked(k)
	}
	return unknown
}

// lostLocked lists the drains that went with everything else, if that was a
// moment ago: an instance that comes late to a new generation finds there what
// has been ordered since.
func (b *board) lostLocked(p pulse, now time.Time) []lost {
	if p.now.Sub(born(p.generation)) > b.cfg.late() {
		return nil
	}
	var drains []lost
	for _, shard := range b.order {
		if d := b.shards[shard].drain; d.stands(now) {
			drains = append(drains, lost{shard: shard, reason: d.reason, until: d.until})
		}
	}
	return drains
}

// restored notes that lost drains are back, and the new generation with them.
func (b *board) restored(p pulse, drains []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inbox.generation = p.generation
	for _, shard := range drains {
		b.news[shard] = true
	}
}

// dueLocked names the shards to be read: those that changed, those of which
// nothing is known, and at times all, which are swept where the time alone is the
// reason. The others are as they were.
func (b *board) dueLocked(p pulse, now time.Time) (read, foreign []string, swept []footprint) {
	in := &b.inbox
	in.beats++
	all := in.beats > fullReading || p.count < in.seen || slices.Contains(p.changed, everyShard)
	if in.beats == fullReading+1 && p.count == in.seen && len(in.marked) == 0 {
		swept = b.footprintsLocked(now)
	}
	for _, shard := range p.changed {
		in.mark(shard, b.shards[shard] != nil)
	}
	in.seen = p.count
	if all {
		in.beats = 0
		foreign = slices.Sorted(maps.Keys(in.foreign))
	}
	var stale []*knowledge
	for _, shard := range b.order {
		k := b.shards[shard]
		if all || in.marked[shard] || k.alone || !k.fleet.fresh(now, b.cfg.life()) {
			read = append(read, shard)
			continue
		}
		if k.unchanged(now) {
			stale = append(stale, k)
		}
	}
	b.publishLocked(now, stale...)
	if !all {
		foreign = in.markedForeign()
	}
	clear(in.marked)
	return read, foreign, swept
}

// markedForeign lists the marked shards that are not watched here.
func (in *inbox) markedForeign() (foreign []string) {
	for shard := range in.marked {
		if in.foreign[shard] {
			foreign = append(foreign, shard)
		}
	}
	return foreign
}

// footprintsLocked is what all keys are like if they are as they were read last.
func (b *board) footprintsLocked(now time.Time) []footprint {
	prints := make([]footprint, len(b.order))
	for i, shard := range b.order {
		k := b.shards[shard]
		prints[i] = footprint{shard: shard, tended: k.lease}
		if !k.alone && k.fleet.fresh(now, b.cfg.life()) {
			prints[i].print = k.print
		}
	}
	return prints
}

// confirmed notes that the keys of some shards are as they were.
func (b *board) confirmed(same []footprint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, p := range same {
		if k := b.shards[p.shard]; k != nil && k.print == p.print && k.unchanged(now) {
			b.publishLocked(now, k)
		}
	}
}

// mark notes that a shard is to be read, and its name if it is not watched here.
func (in *inbox) mark(shard string, watched bool) {
	if !watched {
		if !shardName.MatchString(shard) || len(in.foreign) >= maxForeign && !in.foreign[shard] {
			return
		}
		in.foreign[shard] = true
	}
	in.marked[shard] = true
}

// overhear takes in a hint: names of shards that changed, or a call that
// concerns those whom it names.
func (b *board) overhear(hint string) {
	if whom, ok := strings.CutPrefix(hint, callForWitnesses); ok {
		if slices.Contains(strings.Fields(whom), b.token) {
			signal(b.hints)
		}
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, shard := range strings.Fields(hint) {
		b.inbox.mark(shard, b.shards[shard] != nil)
	}
	signal(b.hints)
}

// unread notes that what was due could not be read.
func (b *board) unread() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inbox.beats = fullReading + 1 // and no digest instead
}
