package healthcache

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxWitnesses is how many others are asked before a shard is called down. In
// a fleet of up to three times as many instances, no third of it can be both
// accuser and all witnesses; in a larger one the odds are below one in a
// hundred thousand for a shard.
const maxWitnesses = 12

// verdict is what the fleet makes of this instance's finding that a shard is
// down.
type verdict int

const (
	unjudged     verdict = iota // not asked, or not answered yet
	agreed                      // others found so too, or nobody could say
	contradicted                // another instance reaches the shard
)

// testimony is the word of one witness.
type testimony struct {
	word string
	at   time.Time // by Redis's clock
}

// The words of a testimony.
const (
	wordAlive   = "alive"   // the server answers, whatever it says
	wordDown    = "down"    // a probe failed
	wordUnknown = "unknown" // no shard of that name is known here
)

// witnesses chooses who is asked about a shard: always the one who probes it,
// if known, and the first of the living by rendezvous. The choice depends on
// the shard and not on who asks, so that many accusers cost a shard no more
// probes than one, and it stays the same while the fleet does.
func witnesses(shard, self, prober string, members []string) []string {
	type candidate struct {
		member string
		rank   uint64
	}
	ranked := make([]candidate, 0, len(members))
	for _, m := range members {
		switch {
		case m == self:
		case prober != "" && strings.HasPrefix(m, prober+"/"):
			ranked = append(ranked, candidate{m, 0})
		default:
			ranked = append(ranked, candidate{m, rendezvous(shard, m)})
		}
	}
	slices.SortFunc(ranked, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.member, b.member))
	})
	chosen := make([]string, min(len(ranked), maxWitnesses))
	for i := range chosen {
		chosen[i] = ranked[i].member
	}
	return chosen
}

func rendezvous(shard, member string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(shard))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(member))
	// FNV alone spreads similar names badly over the high bits.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}

// judge is the verdict after the words of the witnesses so far, of which only
// those since the call count. One who reaches the shard outweighs all who do
// not. Whoever has not spoken when the time for it is over abstains, and does
// not keep the others' finding from being agreed.
func judge(asked []string, said map[string]testimony, since time.Time) verdict {
	found := agreed
	for _, witness := range asked {
		t, spoke := said[witness]
		switch {
		case !spoke || t.at.Before(since):
			found = unjudged
		case t.word == wordAlive:
			return contradicted
		}
	}
	return found
}

// decodeTestimony reads a word and its moment; anything else is no testimony.
func decodeTestimony(text string) (testimony, bool) {
	word, moment, _ := strings.Cut(text, " ")
	millis, err := strconv.ParseInt(moment, 10, 64)
	if err != nil || word != wordAlive && word != wordDown && word != wordUnknown {
		return testimony{}, false
	}
	return testimony{word: word, at: time.UnixMilli(millis)}, true
}

// wordOn is what a witness says who found a shard so.
func wordOn(found State) string {
	if found == Down {
		return wordDown
	}
	return wordAlive
}
