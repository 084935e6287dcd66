package shardrouter_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/shardrouter"
)

// term is how long a mandate lasts in the model; a tick of its clock is about
// eight steps.
const term = 12

// world is a model of a shard of three nodes, a Redis with one record, and three
// instances that reach each of them or not. What Redis says and what a node
// confirms arrives late.
type world struct {
	rnd       *rand.Rand
	now       int
	writable  map[string]bool
	moved     int // when the record went to another node
	life      map[string]int
	record    healthcache.Writer
	instances []*worldInstance
	believed  map[uint64]*worldEpoch
	announced map[uint64]bool // by epoch: the move to it was announced
	moves     int
}

// worldInstance is what one instance knows.
type worldInstance struct {
	used     healthcache.Writer // what its connections go by
	followed int                // since when
	read     healthcache.Writer // as it arrived last
	readAt   int                // when that exchange began
	late     *worldReading      // under way
	writes   []worldWrite
	cutOff   bool            // from Redis
	blind    map[string]bool // nodes that it does not reach
}

// worldReading is a value of the record on its way; it arrives at some time after
// it was read, or never.
type worldReading struct {
	began int
	value healthcache.Writer
}

// worldWrite is a write on its way to a node, or its confirmation on the way back.
type worldWrite struct {
	node  string
	epoch uint64
	ran   int // when the node ran it; 0: it has not yet
}

// worldEpoch is where and when the writes of an epoch ran that were believed.
type worldEpoch struct {
	node        string
	first, last int
}

var worldNodes = []string{"a", "b", "c"}

func newWorld(seed uint64) *world {
	w := &world{
		rnd: rand.New(rand.NewPCG(seed, 0)), writable: map[string]bool{"a": true},
		life: map[string]int{}, believed: map[uint64]*worldEpoch{}, announced: map[uint64]bool{}, now: 1,
	}
	for range 3 {
		w.instances = append(w.instances, &worldInstance{readAt: -term - 1, blind: map[string]bool{}})
	}
	return w
}

// step has something happen: a node changes its role or restarts, a path breaks
// or heals, a reading begins or arrives, an instance probes, one writes, or a
// write gets on by one step.
func (w *world) step() error {
	if w.rnd.IntN(8) == 0 {
		w.now++
	}
	i := w.instances[w.rnd.IntN(len(w.instances))]
	n := worldNodes[w.rnd.IntN(len(worldNodes))]
	switch w.rnd.IntN(16) {
	case 0:
		w.flip(n)
	case 1:
		w.life[n]++
	case 2:
		i.blind[n] = w.rnd.IntN(3) == 0
	case 3:
		i.cutOff = w.rnd.IntN(4) == 0
	case 4, 5, 6:
		if !i.cutOff && i.late == nil {
			i.late = &worldReading{w.now, w.record}
		}
	case 7, 8, 9:
		i.arrive()
	case 10, 11:
		w.probe(i)
	case 12, 13:
		w.write(i)
	default:
		return w.confirm(i)
	}
	return nil
}

// flip changes the role of a node. None is opened when another one has just taken
// over from it, before everybody has heard of that: an operator takes longer.
func (w *world) flip(n string) {
	w.writable[n] = !w.writable[n] && w.now-w.moved > 2*term
}

// arrive has a reading arrive that is under way.
func (i *worldInstance) arrive() {
	if i.late == nil {
		return
	}
	i.read, i.readAt = i.late.value, i.late.began
	i.late = nil
}

// follow has the instance go by the record that it read.
func (w *world) follow(i *worldInstance) {
	known := i.read.Epoch == i.used.Epoch && i.read.Announced() == i.used.Announced()
	if i.read.Epoch >= i.used.Epoch && !known {
		i.used, i.followed = i.read, w.now
	}
}

func (w *world) mandated(i *worldInstance) bool {
	return i.read.Epoch == i.used.Epoch && w.now-i.readAt <= term
}

func (w *world) sees(i *worldInstance) (nodes []sight) {
	for _, addr := range worldNodes {
		nodes = append(nodes, sight{
			Addr: addr, Server: addr, Life: fmt.Sprint(w.life[addr]), GTID: fmt.Sprintf("0-1-%d", 1+w.rnd.IntN(5)),
			Writable: w.writable[addr] && !i.blind[addr], Silent: i.blind[addr], Absent: w.rnd.IntN(2) == 0,
		})
	}
	return nodes
}

// probe has an instance elect, and record what it elected by compare-and-set.
func (w *world) probe(i *worldInstance) {
	w.follow(i)
	nodes := w.sees(i)
	e := shardrouter.ElectWith(i.used, w.mandated(i), w.now-i.followed > term, nodes...)
	if !e.Moves || i.cutOff || i.read != w.record {
		return
	}
	next := healthcache.Writer{Addr: e.To, Server: e.To, Epoch: i.used.Epoch}
	if !i.used.Announced() || e.To != i.used.Addr {
		next.Epoch++
		w.moved = w.now
		w.moves++
	}
	if e.Announced {
		next.From = i.used.Addr
		if i.used.Announced() {
			next.From = i.used.From
		}
		next.FromServer = next.From
		w.announced[next.Epoch] = true
	}
	for _, n := range nodes {
		if n.Addr == e.To {
			next.Life = n.Life
		}
	}
	w.record = next
	i.read, i.readAt, i.late = next, w.now, nil
	w.follow(i)
}

// write has an instance send a write to the node that it goes by.
func (w *world) write(i *worldInstance) {
	w.follow(i)
	n := i.used
	if n.Epoch > 0 && !n.Announced() && w.mandated(i) && !i.blind[n.Addr] {
		i.writes = append(i.writes, worldWrite{node: n.Addr, epoch: n.Epoch})
	}
}

// confirm has the node run the oldest write of an instance, which it refuses if
// it takes none, or has the confirmation arrive, which is believed as long as the
// node is the writer.
func (w *world) confirm(i *worldInstance) error {
	if len(i.writes) == 0 {
		return nil
	}
	if i.writes[0].ran == 0 && w.writable[i.writes[0].node] {
		i.writes[0].ran = w.now
		return nil
	}
	done := i.writes[0]
	i.writes = i.writes[1:]
	w.follow(i)
	if done.ran == 0 || done.epoch != i.used.Epoch || i.used.Announced() || !w.mandated(i) {
		return nil // it was refused, or is settled on the writer
	}
	return w.believe(done)
}

// believe checks that a write went to the one node of its epoch, and ran before
// whatever ran in a later epoch; that it is believed before, too, where the node
// was not seen to take no more writes, since then it may be only there.
func (w *world) believe(done worldWrite) error {
	for epoch, e := range w.believed {
		if e.node == done.node {
			continue
		}
		switch {
		case epoch == done.epoch,
			epoch > done.epoch && (e.first < done.ran || w.announced[epoch]),
			epoch < done.epoch && e.last > done.ran:
			return fmt.Errorf("at %d: a write that ran at %d on %s in epoch %d is believed, beside some on %s in epoch %d",
				w.now, done.ran, done.node, done.epoch, e.node, epoch)
		}
	}
	e := w.believed[done.epoch]
	if e == nil {
		e = &worldEpoch{done.node, done.ran, done.ran}
		w.believed[done.epoch] = e
	}
	e.first, e.last = min(e.first, done.ran), max(e.last, done.ran)
	return nil
}

// Instances that disagree about the primary, by broken paths, late readings and
// late confirmations, never write to two nodes: what anybody believes ran on one
// node after the other.
func TestDisagreeingInstances(t *testing.T) {
	epochs, moves := 0, 0
	for seed := range uint64(200) {
		w := newWorld(seed)
		for range 4000 {
			if err := w.step(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		epochs += len(w.believed)
		moves += w.moves
	}
	t.Logf("%d moves, writes in %d epochs", moves, epochs)
	if epochs < 500 {
		t.Errorf("only %d epochs: the world does not change enough to prove anything", epochs)
	}
}
