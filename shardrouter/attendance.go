package shardrouter

import (
	"sync"
	"time"
)

// awayFor is how long a node counts as having been away after it was seen out
// of reach, or after a restart was noticed: the time in which a failover that
// began meanwhile is over.
const awayFor = time.Minute

// attendance remembers when the nodes of a shard were last away, by address. The
// zero value knows nothing. Safe for use by several goroutines.
type attendance struct {
	mu    sync.Mutex // guards nodes; held for moments by probes
	nodes map[string]presence
}

// presence is what is remembered of one node.
type presence struct {
	life  string    // of the server; empty: it was not heard of yet
	since time.Time // when that was first seen
	away  time.Time // when it was last seen away; zero: never
	// silent: it did not answer when it was last asked.
	silent bool
}

// mark takes in what a probe found, and marks the nodes that were away a short
// while ago, and those that were not for long enough.
func (a *attendance) mark(found []sighting, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.nodes == nil {
		a.nodes = make(map[string]presence, len(found))
	}
	for i, s := range found {
		p := a.nodes[s.Addr]
		p.silent = !s.answered()
		if !s.answered() || p.life != "" && p.life != s.who.life {
			p.away = now
		}
		if s.answered() && (p.since.IsZero() || p.life != s.who.life) {
			p.life, p.since = s.who.life, now
		}
		a.nodes[s.Addr] = p
		found[i].absent = !p.away.IsZero() && now.Sub(p.away) < awayFor
		found[i].steady = s.answered() && !found[i].absent && now.Sub(p.since) >= awayFor
	}
}

// silent reports whether the node at addr did not answer when it was last asked.
func (a *attendance) silent(addr string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.nodes[addr].silent
}
