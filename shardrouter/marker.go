package shardrouter

import (
	"slices"
	"time"
)

// markerProof is which shards of a group show each other's markers. It does not
// change, and is what the instances of a fleet tell each other in Redis.
type markerProof struct {
	// Sets are the shards that hold the same rows, in rotation order; a shard
	// that is nobody's copy is a set of its own.
	Sets [][]string `json:"sets"`
	// Away are shards that were not up. They count as what they were before, for
	// as long as they are not up.
	Away      []string  `json:"away,omitempty"`
	CheckedAt time.Time `json:"checked_at"`
	By        string    `json:"by"`
}

// together reports whether two shards are in one set.
func (p *markerProof) together(a, b string) bool {
	return p != nil && slices.ContainsFunc(p.Sets, func(set []string) bool {
		return slices.Contains(set, a) && slices.Contains(set, b)
	})
}

// setOf names the set of a shard; empty for one that nobody has looked at.
func (p *markerProof) setOf(shard string) string {
	if p == nil {
		return ""
	}
	for _, set := range p.Sets {
		if slices.Contains(set, shard) {
			return "marker " + set[0]
		}
	}
	return ""
}

// shown is, for each shard that was asked, the shards whose new marker it shows.
type shown map[string]map[string]bool

// each reports whether two shards show each other's marker; known: both were
// asked.
func (s shown) each(a, b string) (same, known bool) {
	return s[a][b] && s[b][a], s[a] != nil && s[b] != nil
}

// and is what both looks have found. A shard that one of them could not ask was
// not asked.
func (s shown) and(o shown) shown {
	both := make(shown)
	for shard, markers := range s {
		if o[shard] == nil {
			continue
		}
		both[shard] = make(map[string]bool)
		for other := range markers {
			both[shard][other] = markers[other] && o[shard][other]
		}
	}
	return both
}

// markerSets sorts shards into sets of which all show each other's markers. Two
// of which one could not be asked are together if they were.
func markerSets(ring []string, last *markerProof, s shown) (sets [][]string) {
	together := func(a, b string) bool {
		if same, known := s.each(a, b); known {
			return same
		}
		return last.together(a, b)
	}
next:
	for _, shard := range ring {
		for i, set := range sets {
			if !slices.ContainsFunc(set, func(other string) bool { return !together(shard, other) }) {
				sets[i] = append(set, shard)
				continue next
			}
		}
		sets = append(sets, []string{shard})
	}
	return sets
}

// gains reports whether two shards are together in sets that were not before.
func gains(last *markerProof, sets [][]string) bool {
	for _, set := range sets {
		for _, shard := range set[1:] {
			if !last.together(set[0], shard) {
				return true
			}
		}
	}
	return false
}
