package shardrouter

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// traits is what the text of a statement says, whatever the SQL mode and the
// character set of its connection.
type traits struct {
	reads   bool // see onlyReads
	residue bool // see leavesResidue
	foreign bool // see setsForeignText
	breaks  bool // see breaksTransaction
	commits bool // see mayCommit
}

func traitsOf(query string, several bool) traits {
	return traits{
		reads:   onlyReads(query),
		residue: leavesResidue(query),
		foreign: setsForeignText(query),
		breaks:  breaksTransaction(query, several),
		commits: mayCommit(query, several),
	}
}

// What is kept of texts is bounded by textSlots times longestText. A program has
// some dozens that come again and again, and they are short.
const (
	textSlots   = 512
	longestText = 2 << 10
)

// texts keeps the traits of statements that come again, so that these are read
// once. They follow from the text alone, and so never go out of date. Safe for use
// by several goroutines.
type texts struct {
	several bool // see anyStatement
	seed    maphash.Seed
	slots   [textSlots]textSlot
}

// textSlot keeps one of the texts that fall to it.
type textSlot struct {
	kept atomic.Pointer[keptText]
	// passed is the hash of the last text that was not kept. One that comes once,
	// as those do that have their values in them, is not worth it.
	passed atomic.Uint64
}

type keptText struct {
	query  string
	traits traits
}

func newTexts(several bool) *texts { return &texts{several: several, seed: maphash.MakeSeed()} }

func (t *texts) traitsOf(query string) traits {
	if len(query) > longestText {
		return traitsOf(query, t.several)
	}
	hash := maphash.String(t.seed, query)
	slot := &t.slots[hash%textSlots]
	if kept := slot.kept.Load(); kept != nil && kept.query == query {
		return kept.traits
	}
	found := traitsOf(query, t.several)
	if slot.passed.Swap(hash) == hash {
		slot.kept.Store(&keptText{strings.Clone(query), found}) // not what query is cut out of
	}
	return found
}
