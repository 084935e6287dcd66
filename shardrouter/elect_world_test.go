package shardrouter_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/shardrouter"
)

// world is a model of a shard of three nodes, a Redis with one record, and three
// instances that reach each of them or not, and read the record late. Its clock
// is the number of steps.
type world struct {
	rnd       *rand.Rand
	writable  map[string]bool
	life      map[string]int
	record    healthcache.Writer
	instances []*worldInstance
	written   map[uint64]map[string]bool // which nodes got writes in which epoch
}

// worldInstance is what one instance knows.
type worldInstance struct {
	read   healthcache.Writer // as it arrived last
	late   healthcache.Writer // as it was read, and has not arrived yet
	used   healthcache.Writer // what its connections go by
	fresh  bool
	cutOff bool            // from Redis
	blind  map[string]bool // nodes that it does not reach
}

var worldNodes = []string{"a", "b", "c"}

func newWorld(seed uint64) *world {
	w := &world{
		rnd: rand.New(rand.NewPCG(seed, 0)), writable: map[string]bool{"a": true},
		life: map[string]int{}, written: map[uint64]map[string]bool{},
	}
	for range 3 {
		w.instances = append(w.instances, &worldInstance{blind: map[string]bool{}})
	}
	return w
}

// step has something happen: a node changes its role or restarts, a path breaks
// or heals, a reading arrives, an instance probes, or one writes.
func (w *world) step() error {
	i := w.instances[w.rnd.IntN(len(w.instances))]
	n := worldNodes[w.rnd.IntN(len(worldNodes))]
	switch w.rnd.IntN(8) {
	case 0:
		w.writable[n] = w.rnd.IntN(2) == 0
	case 1:
		w.life[n]++
	case 2:
		i.blind[n] = w.rnd.IntN(3) == 0
	case 3:
		i.cutOff = w.rnd.IntN(3) == 0
		i.fresh = i.fresh && !i.cutOff
	case 4:
		i.beat(w.record)
	case 5, 6:
		w.probe(i)
	default:
		return w.write(i)
	}
	return nil
}

// beat has the reading of the last beat arrive, and reads again.
func (i *worldInstance) beat(record healthcache.Writer) {
	if i.cutOff {
		return
	}
	i.read, i.late, i.fresh = i.late, record, true
	i.follow(i.read)
}

func (i *worldInstance) follow(record healthcache.Writer) {
	if record.Epoch >= i.used.Epoch {
		i.used = record
	}
}

func (w *world) sees(i *worldInstance) (nodes []sight) {
	for _, addr := range worldNodes {
		nodes = append(nodes, sight{
			Addr: addr, Server: addr, Life: fmt.Sprint(w.life[addr]), GTID: fmt.Sprintf("0-1-%d", 1+w.rnd.IntN(5)),
			Writable: w.writable[addr] && !i.blind[addr],
		})
	}
	return nodes
}

// probe has an instance elect, and record what it elected by compare-and-set.
func (w *world) probe(i *worldInstance) {
	nodes := w.sees(i)
	to, moves, _ := shardrouter.Elect(i.used, i.fresh, nodes...)
	if !moves || i.cutOff || i.read != w.record {
		return
	}
	next := healthcache.Writer{Addr: to, Server: to, Epoch: i.used.Epoch + 1}
	for _, n := range nodes {
		if n.Addr == to {
			next.Life = n.Life
		}
	}
	w.record, i.read, i.late = next, next, next
	i.follow(next)
}

// write has an instance write, which it does only to the node that it goes by,
// and that has to take writes at the moment.
func (w *world) write(i *worldInstance) error {
	if n := i.used; n.Epoch > 0 && w.writable[n.Addr] && !i.blind[n.Addr] {
		if w.written[n.Epoch] == nil {
			w.written[n.Epoch] = map[string]bool{}
		}
		w.written[n.Epoch][n.Addr] = true
		if len(w.written[n.Epoch]) > 1 {
			return fmt.Errorf("in epoch %d writes went to %v", n.Epoch, w.written[n.Epoch])
		}
	}
	return nil
}

// Instances that disagree about the primary, by broken paths and late readings,
// never write to two nodes in one epoch.
func TestDisagreeingInstances(t *testing.T) {
	epochs := 0
	for seed := range uint64(200) {
		w := newWorld(seed)
		for range 2000 {
			if err := w.step(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		epochs += len(w.written)
	}
	if epochs < 1000 {
		t.Errorf("only %d epochs: the world does not change enough to prove anything", epochs)
	}
}
