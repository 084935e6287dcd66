package shardrouter

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/healthcache"
)

const (
	// firstLooks is how many looks in a row have to find two shards together
	// that were not so before; one that does not is enough to part them.
	firstLooks = 3
	// proofLife is for how many intervals a proof stands that nobody renews.
	proofLife = 5
)

// prover looks after the proof by markers (CopiesMarker): which shards of each
// group show what the others have just written. One instance of the fleet looks
// in each interval, the others read what it found:
//
//	each shard ◄── a new marker of its own
//	each shard ──► all markers, at once and once
//	a and b are copies: a shows b's new marker, and b shows a's
//
// It has a goroutine of its own, which the router starts and stops.
type prover struct {
	router *Router

	mu     sync.Mutex // guards proofs; held for moments by requests and looks
	proofs map[string]provedAt
}

// provedAt is what is known of a group's markers, and when this instance got to
// know it.
type provedAt struct {
	*markerProof
	at time.Time
}

func newProver(r *Router) *prover { return &prover{router: r, proofs: make(map[string]provedAt)} }

// The keys in Redis of a group's proof, and of the instance whose turn it is.
func proofKey(group string) string { return "db:copies:" + group }
func turnKey(group string) string  { return "db:prove:" + group }

func (v *prover) life() time.Duration { return proofLife * v.router.cfg.HealthInterval }

// run proves until ctx ends.
func (v *prover) run(ctx context.Context) {
	for {
		var groups sync.WaitGroup
		for name, g := range v.router.layout.Load().groups {
			if len(g.ring) > 1 {
				groups.Go(func() { v.beat(ctx, name, namesOf(g.ring)) })
			}
		}
		groups.Wait()
		if !sleep(ctx, v.router.cfg.HealthInterval) {
			return
		}
	}
}

// beat has the group's proof renewed, by this instance or another.
func (v *prover) beat(ctx context.Context, group string, ring []string) {
	ctx, cancel := context.WithTimeout(ctx, v.router.cfg.ProbeTimeout)
	defer cancel()
	rdb := v.router.cfg.Redis
	if rdb == nil {
		v.learn(group, v.prove(ctx, ring, v.of(group)))
		return
	}
	last, err := fetchProof(ctx, rdb, proofKey(group))
	if err == nil && last != nil {
		v.learn(group, last)
	}
	ours, errTurn := takeTurn(ctx, rdb, turnKey(group), v.router.cfg.Instance, v.router.cfg.HealthInterval)
	if err := errors.Join(err, errTurn); err != nil || !ours {
		return
	}
	found := v.prove(ctx, ring, v.of(group))
	v.learn(group, found)
	if encoded, err := json.Marshal(found); err == nil {
		_ = rdb.Set(ctx, proofKey(group), encoded, v.life()).Err() // the next beat says it again
	}
}

// maxProof is longer than any proof, in bytes. No more of one is fetched.
const maxProof = 1 << 20

// fetchProof reads what another instance found; nil: nothing that counts.
func fetchProof(ctx context.Context, rdb redis.Cmdable, key string) (*markerProof, error) {
	encoded, err := rdb.GetRange(ctx, key, 0, maxProof).Bytes()
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := &markerProof{}
	if json.Unmarshal(encoded, found) != nil || slices.ContainsFunc(found.Sets, func(set []string) bool { return len(set) == 0 }) {
		return nil, nil
	}
	return found, nil
}

// prove looks at the shards, once while that finds nothing new together.
func (v *prover) prove(ctx context.Context, ring []string, last *markerProof) *markerProof {
	found := &markerProof{CheckedAt: time.Now().UTC(), By: v.router.cfg.Instance}
	var up []string
	for _, shard := range ring {
		if v.isUp(shard) {
			up = append(up, shard)
		} else {
			found.Away = append(found.Away, shard)
		}
	}
	shows := v.look(ctx, up)
	for n := 1; n < firstLooks && gains(last, markerSets(ring, last, shows)); n++ {
		shows = shows.and(v.look(ctx, up))
	}
	for _, shard := range up { // one that is back, and could not be asked, is not back for the proof
		if shows[shard] == nil && last != nil && slices.Contains(last.Away, shard) {
			found.Away = append(found.Away, shard)
		}
	}
	found.Sets = markerSets(ring, last, shows)
	return found
}

func (v *prover) isUp(shard string) bool {
	return v.router.health.View(shard).State == healthcache.Up
}

// witness is one shard in one look.
type witness struct {
	pool  *pool
	conn  *markerConn // nil: it has taken no marker
	wrote marker
	shows map[string]bool // nil: it was not asked, or did not answer
}

// look has every shard write a marker, and then tell which ones it shows. One
// that does not answer is not in the result.
func (v *prover) look(ctx context.Context, shards []string) shown {
	at := v.router.layout.Load()
	var witnesses []*witness
	for _, shard := range shards {
		if p := at.pool(shard); p != nil {
			witnesses = append(witnesses, &witness{pool: p})
		}
	}
	each(witnesses, func(w *witness) { v.mark(ctx, w) })
	written := make(map[string]marker)
	for _, w := range witnesses {
		if w.conn != nil {
			written[w.pool.name] = w.wrote
		}
	}
	each(witnesses, func(w *witness) { w.ask(ctx, written) })
	found := make(shown)
	for _, w := range witnesses {
		if w.shows != nil {
			found[w.pool.name] = w.shows
		}
	}
	return found
}

// each calls f for all at the same time, and waits for all.
func each(witnesses []*witness, f func(*witness)) {
	var all sync.WaitGroup
	for _, w := range witnesses {
		all.Go(func() { f(w) })
	}
	all.Wait()
}

// mark writes a new marker to a shard. One that refuses it shows none.
func (v *prover) mark(ctx context.Context, w *witness) {
	_, _ = rand.Read(w.wrote[:]) // never fails
	conn, err := w.pool.markerConn(ctx)
	if err == nil {
		if err = conn.write(ctx, w.wrote); err == nil {
			w.conn = conn
			return
		}
		_ = conn.Close() // it has nothing to lose
	}
	if !refused(err) {
		return
	}
	w.shows = map[string]bool{}
	if w.pool.markerless.CompareAndSwap(false, true) {
		v.router.cfg.Logger.Error("no marker can be written: the shard counts as nobody's copy",
			"shard", w.pool.name, "error", err, "remedy", MarkerDDL)
	}
}

// ask has a shard that took a marker show those that were written.
func (w *witness) ask(ctx context.Context, written map[string]marker) {
	if w.conn == nil {
		return
	}
	defer func() { _ = w.conn.Close() }() // it has nothing to lose
	shows, err := w.conn.read(ctx, written)
	switch {
	case err == nil:
		w.shows = shows
	case refused(err):
		w.shows = map[string]bool{}
	}
}

// learn takes in a proof, unless it is known.
func (v *prover) learn(group string, p *markerProof) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if known := v.proofs[group]; known.markerProof != nil && known.By == p.By && known.CheckedAt.Equal(p.CheckedAt) {
		return
	}
	v.proofs[group] = provedAt{p, time.Now()}
}

// of is the group's proof; nil while there is none, and when it was not renewed
// for too long.
func (v *prover) of(group string) *markerProof {
	v.mu.Lock()
	defer v.mu.Unlock()
	if known := v.proofs[group]; time.Since(known.at) < v.life()+v.router.cfg.ProbeTimeout {
		return known.markerProof
	}
	return nil
}

// rows names what a shard holds, by its markers; empty when that is not proved.
// A shard that was away and is up again is proved anew first. A nil prover proves
// nothing.
func (v *prover) rows(group, shard string) string {
	if v == nil {
		return ""
	}
	p := v.of(group)
	if p == nil || slices.Contains(p.Away, shard) && v.isUp(shard) {
		return ""
	}
	return p.setOf(shard)
}

// knows reports whether there is nothing to wait for before something is said of
// the group: no first look at it, nor at a shard that has come up since the last.
func (v *prover) knows(group string) bool {
	if v == nil {
		return true
	}
	p := v.of(group)
	return p != nil && !slices.ContainsFunc(p.Away, v.isUp)
}
