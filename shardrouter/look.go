package shardrouter

import (
	"context"
	"sync"
	"time"

	"github.com/shardhop/shardhop/healthcache"
)

// lookAgain is the time between two looks at a standby while another node of the
// shard is silent.
const lookAgain = 250 * time.Millisecond

// look asks every node of the shard how it is. A node that is silent delays the
// news that another one takes writes by half a second, and a standby is asked
// again meanwhile, since it may be promoted at any moment.
func (p *pool) look(ctx context.Context) []sighting {
	nodes := p.connector.nodes
	if len(nodes) == 1 {
		return []sighting{p.lookAt(ctx, nodes[0], nil)}
	}
	ctx, cancel := context.WithCancel(ctx)
	var looks sync.WaitGroup
	defer looks.Wait()
	defer cancel()
	seen := make(chan sighting)
	for _, n := range nodes {
		looks.Go(func() {
			tell := func(s sighting) {
				select {
				case seen <- s:
				case <-ctx.Done():
				}
			}
			tell(p.lookAt(ctx, n, tell))
		})
	}
	return gather(ctx, p.connector.unseen(), seen)
}

// unseen is what is known of the nodes before one of them has answered.
func (c *connector) unseen() []sighting {
	found := make([]sighting, len(c.nodes))
	for i, n := range c.nodes {
		found[i] = sighting{
			Node: healthcache.Node{Addr: n.addr, State: healthcache.Down},
			err:  &nodeError{n.addr, context.DeadlineExceeded},
		}
	}
	return found
}

// gather waits until every node was seen, or a little longer than for the first
// that takes writes, or until ctx is done.
func gather(ctx context.Context, found []sighting, seen <-chan sighting) []sighting {
	var enough <-chan time.Time
	heard := make(map[string]bool, len(found))
	for len(heard) < len(found) {
		select {
		case s := <-seen:
			heard[s.Addr] = true
			for i := range found {
				if found[i].Addr == s.Addr {
					found[i] = s
				}
			}
			if s.writable() && enough == nil {
				enough = time.After(suspectAfter)
			}
		case <-enough:
			return found
		case <-ctx.Done():
			return found
		}
	}
	return found
}

// lookAt asks one node how it is. As long as it is a standby, again is told so
// and it is asked once more after a while, until ctx is done; nil: it is asked
// once.
func (p *pool) lookAt(ctx context.Context, n *node, again func(sighting)) sighting {
	conn, err := n.connect(ctx, p.era.Load())
	if err != nil {
		return p.sighted(n, introduction{}, "", "", err)
	}
	defer func() { _ = conn.Close() }() // a probe's connection has nothing to lose
	for {
		in, err := n.introduce(ctx, conn)
		var role, cluster string
		if err == nil {
			role, cluster, err = in.role(ctx, conn)
		}
		s := p.sighted(n, in, role, cluster, err)
		if role != roleStandby || again == nil {
			return s
		}
		again(s)
		if !sleep(ctx, lookAgain) {
			return s
		}
	}
}

// sighted puts together what a node said of itself, or why it did not.
func (p *pool) sighted(n *node, in introduction, role, cluster string, err error) sighting {
	s := sighting{Node: healthcache.Node{Addr: n.addr, Role: role, Cluster: cluster}, who: in.who, err: err}
	switch {
	case err != nil:
		s.State = stateOf(p.classify(err, occasion{phase: phaseConnect}))
	case role == rolePrimary:
		s.State = healthcache.Up
	default:
		s.State, s.err = healthcache.ReadOnly, errNotWritable
	}
	return s
}
