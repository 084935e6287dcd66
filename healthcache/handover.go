package healthcache

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// Whoever starts first takes the leases of all shards. An instance that holds
// more than its part offers some to those who hold least, by their mail. It goes
// on probing until the other has taken over, which a script does only while the
// lease is still the giver's; so that an offer to somebody who has just died, or
// who knows no such shard, changes nothing.

// offer is a lease that is offered: to whom, or by whom where it was received.
type offer struct{ shard, peer string }

// offerMark begins a letter with an offer; no shard's name has a blank in it.
const offerMark = "offer "

func (o offer) letter(giver string) string { return offerMark + o.shard + " " + giver }

// parseOffer reads a letter; false for one that is no offer.
func parseOffer(letter string) (offer, bool) {
	text, ok := strings.CutPrefix(letter, offerMark)
	shard, giver, both := strings.Cut(text, " ")
	return offer{shard, giver}, ok && both
}

// fairPart is how many of the leases an instance holds at most.
func fairPart(shards, members int) int { return (shards + members - 1) / members }

// handovers says which of its leases an instance offers to whom, so that it
// holds its part alone: to those who hold least, and among these by rendezvous,
// so that several givers choose different ones. holders has an entry for every
// shard.
func handovers(self string, holders map[string]string, members []string) []offer {
	load := make(map[string]int, len(members))
	for _, holder := range holders {
		load[holder]++
	}
	fair := fairPart(len(holders), max(len(members), 1))
	var offers []offer
	for _, shard := range slices.Sorted(maps.Keys(holders)) {
		if holders[shard] != self || load[self] <= fair {
			continue
		}
		best := leastLoaded(shard, self, load, members)
		if best == "" || load[best] >= fair {
			break
		}
		load[self]--
		load[best]++
		offers = append(offers, offer{shard, best})
	}
	return offers
}

func leastLoaded(shard, self string, load map[string]int, members []string) (best string) {
	for _, m := range members {
		switch {
		case m == self:
		case best == "", load[m] < load[best],
			load[m] == load[best] && rendezvous(shard, m) < rendezvous(shard, best):
			best = m
		}
	}
	return best
}

// burdenedLocked reports whether this instance holds more than its part.
func (b *board) burdenedLocked() bool {
	held := 0
	for _, k := range b.shards {
		if k.lease {
			held++
		}
	}
	return b.inbox.members > 1 && held > fairPart(len(b.shards), b.inbox.members)
}

// handovers is the pure function on what the board knows. Only a shard that is up
// changes hands: what goes on with another one is for its prober to finish.
func (b *board) handovers(members []string) []offer {
	b.mu.Lock()
	defer b.mu.Unlock()
	holders := make(map[string]string, len(b.shards))
	for shard, k := range b.shards {
		holders[shard] = k.holder
		if k.lease {
			holders[shard] = b.token
		}
	}
	return slices.DeleteFunc(handovers(b.token, holders, members), func(o offer) bool {
		return b.shards[o.shard].history.state != Up
	})
}

// welcomeLocked takes the offers out of the mail: those that this instance takes
// up, and what else there is. Who does not reach a shard does not take it.
func (b *board) welcomeLocked(mail []string) (offers []offer, rest []string) {
	for _, letter := range mail {
		o, ok := parseOffer(letter)
		if !ok {
			rest = append(rest, letter)
			continue
		}
		k := b.shards[o.shard]
		if k != nil && !k.lease && !b.closed && k.verdict != contradicted && k.found != Down {
			offers = append(offers, o)
		}
	}
	return offers, rest
}

// tookOver notes which offered leases are this instance's now.
func (b *board) tookOver(shards map[string]bool) {
	b.held(shards)
	b.mu.Lock()
	defer b.mu.Unlock()
	for shard := range shards {
		b.news[shard] = true
	}
}

// offer writes offers into the mail of those whom they are for.
func (f *fleet) offer(ctx context.Context, offers []offer) error {
	pipe := f.client.Pipeline()
	for _, o := range offers {
		pipe.SAdd(ctx, mailKey(o.peer), o.letter(f.token))
		pipe.PExpire(ctx, mailKey(o.peer), f.ttl)
	}
	_, err := pipe.Exec(ctx)
	return err
}

// takeOver takes offered leases, as far as they are still the givers', and
// tells which it got.
func (f *fleet) takeOver(ctx context.Context, offers []offer) map[string]bool {
	calls := make([]call, len(offers))
	for i, o := range offers {
		calls[i] = call{shard: o.shard, args: []any{f.ttl.Milliseconds(), o.peer}}
	}
	got := map[string]bool{}
	for i, cmd := range f.run(ctx, takeOverScript, calls) {
		if n, err := cmd.Int(); err == nil && n == 1 {
			got[offers[i].shard] = true
		}
	}
	return got
}

// spread offers what this instance holds beyond its part. What could not be
// offered is the next time.
func (c *Cache) spread(ctx context.Context) {
	members, err := c.fleet.members(ctx)
	if err != nil {
		return
	}
	if offers := c.board.handovers(members); len(offers) > 0 {
		_ = c.fleet.offer(ctx, offers)
	}
}
