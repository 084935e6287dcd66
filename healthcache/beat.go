package healthcache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// tended is a shard whose lease this instance holds.
type tended struct {
	shard string
	head  string // of the record, if it is to be renewed; else empty
	rtt   int64  // of the last good probe, in microseconds
}

// tending is what became of it.
type tending struct {
	held    bool // the lease is still this instance's
	renewed bool // the record was there as this instance wrote it
	drain   cell
}

// pulse is what a beat brings back.
type pulse struct {
	now        time.Time // by Redis's clock
	count      int64     // the change counter
	generation string    // when the fleet's keys were first written, and who did it
	members    int       // instances alive, this one included
	changed    []string  // shards whose keys changed since the last beat
	asked      []string  // shards to testify about
	tended     map[string]tending
}

// beat is the sign of life of this instance, extends its leases and asks for
// what is new: one command on a single server, one more for each lease on a
// cluster.
func (f *fleet) beat(ctx context.Context, seen int64, held []tended) (pulse, error) {
	if f.single() {
		return f.beatAtOnce(ctx, seen, held)
	}
	p, err := f.beatApart(ctx, seen, held, (*redis.Script).EvalSha)
	if errors.Is(err, errNoScript) {
		return f.beatApart(ctx, seen, held, (*redis.Script).Eval)
	}
	return p, err
}

func (f *fleet) beatKeys() []string {
	return []string{membersKey, changesKey, generationKey, mailKey(f.token)}
}

func (f *fleet) beatArgs(seen int64, leases int) []any {
	return []any{f.token, f.alive.Milliseconds(), f.ttl.Milliseconds(), seen, leases}
}

func (f *fleet) beatAtOnce(ctx context.Context, seen int64, held []tended) (pulse, error) {
	keys, args := f.beatKeys(), f.beatArgs(seen, len(held))
	for _, t := range held {
		keys = append(keys, healthKey(t.shard), leaseKey(t.shard), drainKey(t.shard))
		args = append(args, t.head, t.rtt)
	}
	records := *f.ledger.keys.Load()
	keys, args = append(keys, records...), append(args, f.ledger.prints(records)...)
	began := time.Now()
	reply, err := beatScript.Run(ctx, f.client, keys, args...).Slice()
	if err != nil {
		return pulse{}, err
	}
	p, rest, err := decodePulse(reply)
	if err != nil {
		return pulse{}, err
	}
	f.ledger.absorb(records, reply[7], began)
	if len(rest) != 3*len(held) {
		return pulse{}, fmt.Errorf("%w: %d leases tended of %d", errNothingRead, len(rest)/3, len(held))
	}
	for i, t := range held {
		word, _ := rest[3*i].(int64)
		drain, exists := rest[3*i+1].(string)
		left, _ := rest[3*i+2].(int64)
		p.tended[t.shard] = tending{held: word > 0, renewed: word == 2, drain: cell{
			value: drain, exists: exists, left: time.Duration(max(left, 0)) * time.Millisecond,
		}}
	}
	return p, nil
}

// beatApart is a beat on a cluster: what concerns a shard lies in other slots.
func (f *fleet) beatApart(ctx context.Context, seen int64, held []tended, eval scriptFunc) (pulse, error) {
	pipe, began := f.client.Pipeline(), time.Now()
	reply := eval(beatScript, ctx, pipe, f.beatKeys(), f.beatArgs(seen, 0)...)
	records := *f.ledger.keys.Load()
	values := make([]*redis.StringCmd, len(records))
	for i, key := range records {
		values[i] = pipe.GetRange(ctx, key, 0, maxRecordBytes) // as luaBounded
	}
	calls := make([]call, len(held))
	drains, ends := make([]*redis.Cmd, len(held)), make([]*redis.DurationCmd, len(held))
	for i, t := range held {
		calls[i] = call{shard: t.shard, args: []any{f.ttl.Milliseconds(), t.head, t.rtt}}
		drains[i] = eval(readScript, ctx, pipe, []string{drainKey(t.shard)})
		ends[i] = pipe.PTTL(ctx, drainKey(t.shard))
	}
	words := f.queue(ctx, pipe, calls, tendScript, eval)
	// Each command carries its own error.
	_, _ = pipe.Exec(ctx)
	if unknownScript(slices.Concat(words, drains, []*redis.Cmd{reply})) {
		return pulse{}, errNoScript
	}
	cells := make([]cell, len(values))
	for i, value := range values {
		cells[i] = cellOf(value)
	}
	f.ledger.absorbCells(records, cells, began)
	slice, err := reply.Slice()
	if err != nil {
		return pulse{}, err
	}
	p, _, err := decodePulse(slice)
	if err != nil {
		return pulse{}, err
	}
	for i, t := range held {
		word, err := words[i].Int()
		if err != nil {
			continue
		}
		texts, _ := decodeTexts(drains[i], 1)
		drain := texts[0]
		drain.ends(ends[i])
		p.tended[t.shard] = tending{held: word > 0, renewed: word == 2, drain: drain}
	}
	return p, nil
}

// decodePulse reads the reply of the script, and returns what it says of the
// leases as it stands.
func decodePulse(reply []any) (p pulse, tended []any, err error) {
	if len(reply) != 8 {
		return pulse{}, nil, fmt.Errorf("%w: a beat of %d parts", errNothingRead, len(reply))
	}
	now, _ := reply[0].(int64)
	p.now = time.UnixMilli(now)
	p.count, _ = reply[1].(int64)
	p.generation, _ = reply[2].(string)
	members, _ := reply[3].(int64)
	p.members = int(members)
	p.changed, p.asked = texts(reply[4]), texts(reply[5])
	tended, _ = reply[6].([]any)
	p.tended = make(map[string]tending, len(tended)/3)
	return p, tended, nil
}

// texts are the strings of a list in a reply.
func texts(list any) []string {
	parts, _ := list.([]any)
	var out []string
	for _, part := range parts {
		if text, ok := part.(string); ok {
			out = append(out, text)
		}
	}
	return out
}
