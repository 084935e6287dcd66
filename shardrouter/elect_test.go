package shardrouter_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/shardrouter"
)

type sight = shardrouter.NodeSeen

// node is a node as it is seen while all is well, changed by with.
func seenNode(addr string, writable bool, with ...func(*sight)) sight {
	n := sight{Addr: addr, Server: "server of " + addr, Life: "1", GTID: "0-1-100", Writable: writable}
	for _, w := range with {
		w(&n)
	}
	return n
}

func restarted(n *sight)          { n.Life = "2" }
func absent(n *sight)             { n.Absent = true }
func replaced(n *sight)           { n.Server = "another" }
func member(n *sight)             { n.Cluster = "cluster" }
func at(gtid string) func(*sight) { return func(n *sight) { n.GTID = gtid } }
func drained(n *sight)            { n.Drained = true }
func leaving(n *sight)            { n.Drained, n.Leaving = true, true }
func called(name string) func(*sight) {
	return func(n *sight) { n.Server = name }
}

func TestElection(t *testing.T) {
	onA := healthcache.Writer{Addr: "a", Server: "server of a", Life: "1", Epoch: 3}
	none := healthcache.Writer{}
	tests := []struct {
		name, reason string
		record       healthcache.Writer
		cutOff       bool
		nodes        []sight
		to           string
		moves, alarm bool
	}{
		{"steady", "the recorded node takes writes", onA, false,
			[]sight{seenNode("a", true), seenNode("b", false)}, "a", false, false},
		{"planned switchover, first half", "nobody takes writes", onA, false,
			[]sight{seenNode("a", false), seenNode("b", false)}, "", false, false},
		{"planned switchover, second half", "the standby is the only one", onA, false,
			[]sight{seenNode("a", false), seenNode("b", true)}, "b", true, false},
		{"first start", "one takes writes", none, false,
			[]sight{seenNode("a", false), seenNode("b", true)}, "b", true, false},
		{"first start of two primaries", "nobody knows which is right", none, false,
			[]sight{seenNode("a", true), seenNode("b", true)}, "", false, true},
		{"second primary", "the recorded one goes on", onA, false,
			[]sight{seenNode("a", true), seenNode("b", true, at("0-2-200"))}, "a", false, true},
		{"restarted, promoted one ahead", "what the old one lost is there", onA, false,
			[]sight{seenNode("a", true, restarted), seenNode("b", true, at("0-2-101"))}, "b", true, true},
		{"thawed, promoted one ahead", "it was away as well", onA, false,
			[]sight{seenNode("a", true, absent), seenNode("b", true, at("0-2-101"))}, "b", true, true},
		{"restarted, promoted one behind", "moving would lose rows", onA, false,
			[]sight{seenNode("a", true, restarted), seenNode("b", true, at("0-1-99"))}, "a", false, true},
		{"restarted, promoted one equal", "nothing speaks for moving", onA, false,
			[]sight{seenNode("a", true, restarted), seenNode("b", true)}, "a", false, true},
		{"restarted, diverged", "each has what the other lacks", onA, false,
			[]sight{seenNode("a", true, restarted, at("0-1-101,1-1-5")), seenNode("b", true, at("0-2-103,1-1-4"))}, "a", false, true},
		{"restarted, two ahead", "nobody knows which is right", onA, false,
			[]sight{seenNode("a", true, restarted), seenNode("b", true, at("0-2-101")), seenNode("c", true, at("0-3-102"))}, "a", false, true},
		{"two promoted", "nobody knows which is right", onA, false,
			[]sight{seenNode("a", false), seenNode("b", true), seenNode("c", true)}, "", false, true},
		{"another server at the address", "it is the only one", onA, false,
			[]sight{seenNode("a", true, replaced), seenNode("b", false)}, "a", true, false},
		{"another server at the address, and a promoted one", "neither is recorded", onA, false,
			[]sight{seenNode("a", true, replaced), seenNode("b", true)}, "", false, true},
		{"two addresses of one server", "they are one node", onA, false,
			[]sight{seenNode("a", true), seenNode("b", true, called("server of a"))}, "a", false, false},
		{"the address of the server changed", "it is the only one", onA, false,
			[]sight{seenNode("c", true, called("server of a")), seenNode("b", false)}, "c", true, false},
		{"Galera", "any member may be it, the recorded one stays", onA, false,
			[]sight{seenNode("b", true, member), seenNode("a", true, member)}, "a", false, false},
		{"Galera without a record", "the first member will do", none, false,
			[]sight{seenNode("b", true, member), seenNode("a", true, member)}, "b", true, false},
		{"Galera member gone", "the next one takes over", onA, false,
			[]sight{seenNode("a", false), seenNode("b", true, member), seenNode("c", true, member)}, "b", true, false},
		{"cut off from Redis", "the last known writer goes on", onA, true,
			[]sight{seenNode("a", true), seenNode("b", false)}, "a", false, false},
		{"cut off, and another promoted", "nothing is moved", onA, true,
			[]sight{seenNode("a", false), seenNode("b", true)}, "", false, false},
		{"cut off, and a second primary", "the fleet may have moved", onA, true,
			[]sight{seenNode("a", true), seenNode("b", true)}, "", false, true},
		{"drained standby", "it is not promoted, so nothing changes", onA, false,
			[]sight{seenNode("a", true), seenNode("b", false, drained)}, "a", false, false},
		{"drained standby is all that is left", "better than nothing", onA, false,
			[]sight{seenNode("a", false), seenNode("b", true, drained)}, "b", true, false},
		{"drained standby, and another", "the other one is preferred", onA, false,
			[]sight{seenNode("a", false), seenNode("b", true, drained), seenNode("c", true)}, "c", true, false},
		{"writer just drained", "new work waits for the operator's tool", onA, false,
			[]sight{seenNode("a", true, leaving), seenNode("b", false)}, "", false, false},
		{"drained writer, nobody took over", "nobody is locked out", onA, false,
			[]sight{seenNode("a", true, drained), seenNode("b", false)}, "a", false, true},
		{"drained writer, another promoted", "that is what the drain was for", onA, false,
			[]sight{seenNode("a", true, leaving), seenNode("b", true)}, "b", true, false},
		{"drained Galera member", "another one takes over at once", onA, false,
			[]sight{seenNode("a", true, member, leaving), seenNode("b", true, member)}, "b", true, false},
		{"cut off since the start", "nobody may be using another", none, true,
			[]sight{seenNode("a", true), seenNode("b", false)}, "", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			to, moves, alarm := shardrouter.Elect(tt.record, !tt.cutOff, tt.nodes...)
			if to != tt.to || moves != tt.moves || (alarm != "") != tt.alarm {
				t.Errorf("writes go to %q, recorded: %v, alarm %q; want %q, %v, %v: %s", to, moves, alarm, tt.to, tt.moves, tt.alarm, tt.reason)
			}
		})
	}
}

// Whatever is seen, nothing is written to a node that takes no writes, nothing
// is moved away from a recorded node that stood all the time, and nothing
// without Redis.
func TestElectionProperties(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[rnd.IntN(len(from))] }
	for range 20_000 {
		var nodes []sight
		for _, addr := range []string{"a", "b", "c"} {
			nodes = append(nodes, sight{
				Addr: addr, Server: pick(addr, addr, "x", ""), Life: pick("1", "2"), Cluster: pick("", "", "g"),
				GTID: pick("", "0-1-5", "0-2-6", "0-1-5,1-1-1"), Writable: rnd.IntN(2) == 0, Absent: rnd.IntN(2) == 0,
			})
		}
		record := healthcache.Writer{}
		if rnd.IntN(4) > 0 {
			record = healthcache.Writer{Addr: pick("a", "b", "c", "d"), Server: pick("a", "b", "x", ""), Life: "1", Epoch: 1}
		}
		current := rnd.IntN(3) > 0
		to, moves, alarm := shardrouter.Elect(record, current, nodes...)
		for _, n := range nodes {
			stood := n.Addr == record.Addr && n.Server == record.Server && n.Writable && !n.Absent && n.Life == "1"
			switch {
			case n.Addr == to && !n.Writable:
				t.Fatalf("writes go to %s, which takes none: %+v", to, nodes)
			case stood && current && (to != n.Addr || moves):
				t.Fatalf("the recorded node %s stood, and writes go to %q: %+v", n.Addr, to, nodes)
			}
		}
		if moves && !current {
			t.Fatalf("moved to %s without Redis: %+v", to, nodes)
		}
		if to == "" && alarm == "" && current {
			for _, n := range nodes {
				if n.Writable {
					t.Fatalf("%s takes writes, nobody is written to, and there is no alarm: %+v, record %+v", n.Addr, nodes, record)
				}
			}
		}
	}
}

func TestAhead(t *testing.T) {
	tests := []struct {
		x, y, reason string
		want         bool
	}{
		{"0-1-101", "0-1-100", "one more", true},
		{"0-2-101", "0-1-100", "the domain counts, whoever wrote", true},
		{"0-1-100", "0-1-100", "equal", false},
		{"0-1-100", "0-1-101", "behind", false},
		{"0-1-100,1-1-1", "0-1-100", "another domain", true},
		{"0-1-99,1-1-1", "0-1-100", "diverged", false},
		{"u:1-6", "u:1-5", "MySQL", true},
		{"u:1-5:7,\nv:1", "u:1-5,\nv:1", "MySQL prints a line for each server", true},
		{"u:1-5", "u:1-5:7", "it lacks 7", false},
		{"u:2-9", "u:1-5", "it lacks 1", false},
		{"", "0-1-5", "nothing is said", false},
		{"0-1-5", "", "nothing is said", false},
		{"nonsense", "0-1-5", "not a position", false},
		{"u:tag:1-5", "u:1-3", "not understood", false},
	}
	for _, tt := range tests {
		if got := shardrouter.Ahead(tt.x, tt.y); got != tt.want {
			t.Errorf("Ahead(%q, %q) = %v: %s", tt.x, tt.y, got, tt.reason)
		}
	}
}

// Whatever a server calls its position, none is ahead of itself, and no two are
// ahead of each other.
func FuzzAhead(f *testing.F) {
	for _, s := range []string{"0-1-5|0-1-6", "u:1-5:7,v:1|u:1-5", "|", ":|-", "a:1-|0-0-0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		x, y, _ := strings.Cut(text, "|")
		if shardrouter.Ahead(x, x) || shardrouter.Ahead(x, y) && shardrouter.Ahead(y, x) {
			t.Errorf("%q and %q", x, y)
		}
	})
}
