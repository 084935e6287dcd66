package shardrouter_test

import (
	"testing"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/shardrouter"
)

func mute(n *sight) { n.Silent = true }

// A move away from a node that may still take writes is announced, and completed
// or taken back when nobody writes to that any more.
func TestAnnouncedMoves(t *testing.T) {
	onA := healthcache.Writer{Addr: "a", Server: "server of a", Life: "1", Epoch: 3}
	toB := healthcache.Writer{Addr: "b", Server: "server of b", Epoch: 4, From: "a", FromServer: "server of a"}
	type elected = shardrouter.Elected
	tests := []struct {
		name, reason string
		record       healthcache.Writer
		early        bool // not everybody has heard of the record
		nodes        []sight
		want         elected
	}{
		{"silent node before", "it may thaw", onA, false,
			[]sight{seenNode("a", false, mute), seenNode("b", true)}, elected{To: "b", Moves: true, Announced: true}},
		{"demoted node before", "it takes no writes from anybody", onA, false,
			[]sight{seenNode("a", false), seenNode("b", true)}, elected{To: "b", Moves: true}},
		{"another server at the address", "the one before may be elsewhere", onA, false,
			[]sight{seenNode("a", true, replaced), seenNode("b", false)}, elected{To: "a", Moves: true, Announced: true}},
		{"Galera", "no member commits alone", onA, false,
			[]sight{seenNode("a", false, mute), seenNode("b", true, member)}, elected{To: "b", Moves: true}},
		{"drained, and the promoted one lacks something", "it would be lost", onA, false,
			[]sight{seenNode("a", true, drained, at("0-1-101")), seenNode("b", true)}, elected{To: "a", Alarm: "a is drained"}},
		{"too early", "somebody may be writing to the node before", toB, true,
			[]sight{seenNode("a", false, mute), seenNode("b", true)}, elected{}},
		{"node before still silent", "the time is over", toB, false,
			[]sight{seenNode("a", false, mute), seenNode("b", true)}, elected{To: "b", Moves: true}},
		{"node before back with more", "that would be lost", toB, false,
			[]sight{seenNode("a", true, at("0-1-101")), seenNode("b", true)}, elected{To: "a", Moves: true, Alarm: "several"}},
		{"node before back with another last one", "each has one that the other lacks, and that would be lost", toB, false,
			[]sight{seenNode("a", true), seenNode("b", true, at("0-2-100"))}, elected{To: "a", Moves: true, Alarm: "several"}},
		{"node before back with nothing more", "its operator has promoted another", toB, false,
			[]sight{seenNode("a", true), seenNode("b", true)}, elected{To: "b", Moves: true}},
		{"next node gone", "the one before may go on", toB, false,
			[]sight{seenNode("a", true), seenNode("b", false, mute)}, elected{To: "a", Moves: true}},
		{"next node gone, and a third one", "it is the only one, and the first may thaw", toB, false,
			[]sight{seenNode("a", false, mute), seenNode("b", false, mute), seenNode("c", true)}, elected{To: "c", Moves: true, Announced: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := shardrouter.ElectWith(tt.record, true, !tt.early, tt.nodes...)
			if (got.Alarm != "") != (tt.want.Alarm != "") {
				t.Errorf("alarm %q, want %q: %s", got.Alarm, tt.want.Alarm, tt.reason)
			}
			got.Alarm, tt.want.Alarm = "", ""
			if got != tt.want {
				t.Errorf("got %+v, want %+v: %s", got, tt.want, tt.reason)
			}
		})
	}
}
