package healthcache

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// carried is what a beat takes along: what this instance knows, so that Redis
// need not tell it again, and the leases that it holds.
type carried struct {
	seen       int64 // the change counter
	members    int
	generation string
	held       []tended
}

// tended is a shard whose lease this instance holds.
type tended struct {
	shard   string
	drained bool   // as far as is known
	record  string // its constant part, if it is to be renewed; else empty
	rtt     int64  // of the last good probe, in microseconds
}

// order says whether the shard is drained, and its name.
func (t tended) order() string {
	if t.drained {
		return "+" + t.shard
	}
	return "-" + t.shard
}

// mark is a short digest of the record, "-" where there is none.
func (t tended) mark() string {
	if t.record == "" {
		return "-"
	}
	return mark(t.record)
}

// tending is what became of it.
type tending struct {
	held    bool // the lease is still this instance's
	renewed bool // the record was there as this instance wrote it
	drain   cell
}

// pulse is what a beat brings back.
type pulse struct {
	now        time.Time // by Redis's clock; zero where all is as it was
	count      int64     // the change counter
	generation string    // when the fleet's keys were first written, and who did it
	members    int       // instances alive, this one included
	changed    []string  // shards whose keys changed since the last beat
	asked      []string  // shards to testify about
	tended     map[string]tending
}

// beat is the sign of life of this instance, extends its leases and asks for
// what is new: one command on a single server, two more for each lease on a
// cluster.
func (f *fleet) beat(ctx context.Context, c carried) (pulse, error) {
	if f.single() {
		return f.beatAtOnce(ctx, c)
	}
	return f.beatApart(ctx, c)
}

// knows is what an instance says that it knows; see the script.
func (f *fleet) knows(c carried) string {
	return fmt.Sprintf("%d %d %d", c.seen, c.members, f.ttl.Milliseconds())
}

func (f *fleet) beatAtOnce(ctx context.Context, c carried) (pulse, error) {
	leases := make([]string, len(c.held))
	for i, t := range c.held {
		leases[i] = fmt.Sprintf("%s %s %d", t.order(), t.mark(), t.rtt)
	}
	records := *f.ledger.keys.Load()
	keys := append([]string{mailKey(f.token)}, records...)
	args := append([]any{f.knows(c), strings.Join(leases, " ")}, f.ledger.prints(records)...)
	began := time.Now()
	reply, err := beatScript.Run(ctx, f.client, keys, args...).Result()
	if err != nil {
		return pulse{}, err
	}
	p, parts, err := decodePulse(reply, c)
	if err != nil {
		return pulse{}, err
	}
	if n := len(parts.tended); parts.tended != nil && n != 3*len(c.held) {
		return pulse{}, fmt.Errorf("%w: %d leases tended of %d", errNothingRead, n/3, len(c.held))
	}
	f.ledger.absorb(records, parts.ledger, began)
	for i, t := range c.held {
		p.tended[t.shard] = parts.tending(i, t)
	}
	return p, nil
}

// parts are those of a beat's reply that speak of leases and of the ledger, as
// they stand there. Both are nil where all is as it was.
type parts struct{ tended, ledger []any }

// tending is what became of the lease that the beat carried in place i.
func (p parts) tending(i int, t tended) tending {
	if p.tended == nil {
		return tending{held: true, renewed: t.record != ""}
	}
	word, _ := p.tended[3*i].(int64)
	drain, exists := p.tended[3*i+1].(string)
	left, _ := p.tended[3*i+2].(int64)
	return tending{held: word > 0, renewed: word == 2, drain: cell{
		value: drain, exists: exists, left: time.Duration(max(left, 0)) * time.Millisecond,
	}}
}

// decodePulse reads the reply of the script to what a beat carried.
func decodePulse(reply any, c carried) (pulse, parts, error) {
	p := pulse{count: c.seen, members: c.members, generation: c.generation, tended: make(map[string]tending, len(c.held))}
	if reply == int64(0) {
		return p, parts{}, nil
	}
	list, _ := reply.([]any)
	if len(list) != 8 {
		return pulse{}, parts{}, fmt.Errorf("%w: a beat of %d parts", errNothingRead, len(list))
	}
	now, _ := list[0].(int64)
	p.now = time.UnixMilli(now)
	p.count, _ = list[1].(int64)
	p.generation, _ = list[2].(string)
	members, _ := list[3].(int64)
	p.members = int(members)
	p.changed, p.asked = texts(list[4]), texts(list[5])
	tended, leases := list[6].([]any)
	ledger, records := list[7].([]any)
	if !leases || !records {
		return pulse{}, parts{}, fmt.Errorf("%w: a beat without leases or ledger", errNothingRead)
	}
	return p, parts{tended, ledger}, nil
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
