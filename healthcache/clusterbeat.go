package healthcache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// On a cluster the keys of each shard lie in other slots than the fleet's, so
// that each gets commands of its own, all in one round trip. Of a drain it is
// asked whether it stands, and for the rest only where that is news.

// beatApart is a beat on a cluster.
func (f *fleet) beatApart(ctx context.Context, c carried) (pulse, error) {
	p, err := f.beatPiped(ctx, c, (*redis.Script).EvalSha)
	if errors.Is(err, errNoScript) {
		return f.beatPiped(ctx, c, (*redis.Script).Eval)
	}
	return p, err
}

func (f *fleet) beatPiped(ctx context.Context, c carried, eval scriptFunc) (pulse, error) {
	pipe, began := f.client.Pipeline(), time.Now()
	reply := eval(beatScript, ctx, pipe, []string{mailKey(f.token)}, f.knows(c))
	records := *f.ledger.keys.Load()
	values := make([]*redis.StringCmd, len(records))
	for i, key := range records {
		values[i] = pipe.GetRange(ctx, key, 0, maxRecordBytes) // as luaBounded
	}
	words := make([]*redis.Cmd, len(c.held))
	for i, t := range c.held {
		words[i] = eval(extendScript, ctx, pipe, []string{healthKey(t.shard)}, f.extension(t))
	}
	drains := queueDrains(ctx, pipe, c.held)
	// Each command carries its own error.
	_, _ = pipe.Exec(ctx)
	if unknownScript(append(words, reply)) {
		return pulse{}, errNoScript
	}
	cells := make([]cell, len(values))
	for i, value := range values {
		cells[i] = cellOf(value)
	}
	f.ledger.absorbCells(records, cells, began)
	if reply.Err() != nil {
		return pulse{}, reply.Err()
	}
	p, _, err := decodePulse(reply.Val(), c)
	if err != nil {
		return pulse{}, err
	}
	f.extended(ctx, p, c.held, words)
	f.readDrains(ctx, p, others(c.held, drains))
	return p, nil
}

// extension is what extendScript is given for a shard.
func (f *fleet) extension(t tended) string {
	return fmt.Sprintf("%s %d %s %d", f.token[len(f.token)-tokenEnd:], f.ttl.Milliseconds(), t.mark(), t.rtt)
}

// extended adds to a pulse what became of the leases. One that is not this
// instance's may be nobody's, and is taken then.
func (f *fleet) extended(ctx context.Context, p pulse, held []tended, words []*redis.Cmd) {
	var lost []string
	for i, t := range held {
		word, err := words[i].Int()
		switch {
		case err != nil:
		case word == 0:
			lost = append(lost, t.shard)
		default:
			p.tended[t.shard] = tending{held: true, renewed: word == 2, drain: cell{failed: true}}
		}
	}
	for shard, mine := range f.take(ctx, lost) {
		p.tended[shard] = tending{held: mine, drain: cell{failed: true}}
	}
}

// queueDrains asks which of the shards are drained.
func queueDrains(ctx context.Context, pipe redis.Pipeliner, held []tended) []*redis.IntCmd {
	cmds := make([]*redis.IntCmd, len(held))
	for i, t := range held {
		cmds[i] = pipe.Exists(ctx, drainKey(t.shard))
	}
	return cmds
}

// others are the shards whose drain key is there although they are not known to
// be drained, or the other way round.
func others(held []tended, drains []*redis.IntCmd) (shards []string) {
	for i, t := range held {
		if n, err := drains[i].Result(); err == nil && (n == 1) != t.drained {
			shards = append(shards, t.shard)
		}
	}
	return shards
}

// readDrains adds the drains of shards to a pulse.
func (f *fleet) readDrains(ctx context.Context, p pulse, shards []string) {
	if len(shards) == 0 {
		return
	}
	r, err := f.read(ctx, shards, nil, p.now)
	if err != nil {
		return // at the next beat
	}
	for shard, keys := range r.shards {
		if t, tended := p.tended[shard]; tended {
			t.drain = keys.drain
			p.tended[shard] = t
		}
	}
}

// peek tells whether a beat has something to bring: it looks at the change
// counter, and at the drains of the shards whose lease this instance holds.
func (f *fleet) peek(ctx context.Context, c carried) (news bool, err error) {
	if f.single() {
		orders := make([]string, len(c.held))
		for i, t := range c.held {
			orders[i] = t.order()
		}
		n, err := peekScript.Run(ctx, f.client, nil, fmt.Sprint(c.seen), strings.Join(orders, " ")).Int()
		return n != 0, err
	}
	pipe := f.client.Pipeline()
	count, drains := pipe.Get(ctx, counterKey), queueDrains(ctx, pipe, c.held)
	// Each command carries its own error.
	_, _ = pipe.Exec(ctx)
	if err := count.Err(); err != nil && !errors.Is(err, redis.Nil) {
		return false, err
	}
	return count.Val() != fmt.Sprint(c.seen) || len(others(c.held, drains)) > 0, nil
}
