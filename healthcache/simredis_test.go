//go:build !race

package healthcache

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// modelRedis does what the scripts do, in memory and virtual time, and counts
// what they cost on the wire of a single server.
type modelRedis struct {
	born    string
	members map[string]time.Time // until when each counts
	numbers map[string]int64     // of the last change of each shard
	top     int64
	records map[string]modelRecord
	leases  map[string]modelLease
	mail    map[string]map[string]bool
	words   map[string]map[string]testimony
	ttl     time.Duration
	alive   time.Duration
	publish func(hint string)

	downs map[string]int // how often a record said down
}

type modelRecord struct {
	status Status
	until  time.Time
}

type modelLease struct {
	token string
	until time.Time
}

// bill is what an instance used; reading is the part of the bytes that went
// into reading keys.
type bill struct{ commands, bytes, reading int }

func newModelRedis(cfg Config) *modelRedis {
	return &modelRedis{
		members: map[string]time.Time{}, numbers: map[string]int64{}, records: map[string]modelRecord{},
		leases: map[string]modelLease{}, mail: map[string]map[string]bool{}, words: map[string]map[string]testimony{},
		ttl: cfg.life(), alive: cfg.life() + cfg.Interval/4, downs: map[string]int{},
	}
}

const (
	shaBytes   = 40
	clockBytes = 16 // ":1746514089000\r\n"
)

// wire is the size of a command, or of a reply made of texts.
func wire(parts ...string) int {
	n := len(fmt.Sprintf("*%d\r\n", len(parts)))
	for _, p := range parts {
		n += len(fmt.Sprintf("$%d\r\n\r\n", len(p))) + len(p)
	}
	return n
}

func (b *bill) add(request []string, reply int) {
	b.commands++
	b.bytes += wire(request...) + reply
}

func (m *modelRedis) bump(shards ...string) {
	for _, s := range shards {
		m.top++
		m.numbers[s] = m.top
	}
}

func (m *modelRedis) beat(b *bill, token string, c carried) pulse {
	now := time.Now()
	leases := make([]string, len(c.held))
	for i, t := range c.held {
		leases[i] = fmt.Sprintf("%s %s %d", t.order(), t.mark(), t.rtt)
	}
	request := []string{"evalsha", strings.Repeat("x", shaBytes), "1", mailKey(token),
		fmt.Sprintf("%d %d 3000", counterBase+c.seen, c.members), strings.Join(leases, " ")}
	if m.members[token].IsZero() {
		m.top++
	}
	m.members[token] = now.Add(m.alive)
	for member, until := range m.members {
		if !until.After(now) {
			delete(m.members, member)
			m.bump(everyShard)
		}
	}
	if m.born == "" {
		m.born = fmt.Sprint(now.UnixMilli(), "-", token)
	}
	p := pulse{now: now, count: m.top, generation: m.born, members: len(m.members), tended: map[string]tending{}}
	if c.seen != m.top {
		for s, n := range m.numbers {
			if n > c.seen {
				p.changed = append(p.changed, s)
			}
		}
	}
	p.asked = slices.Sorted(maps.Keys(m.mail[token]))
	delete(m.mail, token)
	quiet := c.seen == m.top && c.members == p.members && len(p.asked) == 0
	reply := 4 + 2*clockBytes + 10 + wire(m.born) + 8 + wire(p.changed...) + wire(p.asked...) + 6
	for _, t := range c.held {
		was := m.tend(token, t)
		p.tended[t.shard] = was
		reply += 4 + 5 + 5
		quiet = quiet && was.held && was.renewed == (t.record != "")
	}
	if quiet {
		reply = 4
	}
	b.add(request, reply)
	return p
}

// counterBase makes the model's change counter as long as Redis's.
const counterBase = 1_700_000_000_000

func (m *modelRedis) peek(b *bill, c carried) bool {
	orders := make([]string, len(c.held))
	for i, t := range c.held {
		orders[i] = t.order()
	}
	b.add([]string{"evalsha", strings.Repeat("x", shaBytes), "0", fmt.Sprint(counterBase + c.seen), strings.Join(orders, " ")}, 4)
	return c.seen != m.top
}

func (m *modelRedis) tend(token string, t tended) tending {
	now := time.Now()
	if lease, ok := m.leases[t.shard]; ok && lease.until.After(now) && lease.token != token {
		return tending{}
	}
	m.leases[t.shard] = modelLease{token, now.Add(m.ttl)}
	record, ok := m.records[t.shard]
	if !ok || !record.until.After(now) {
		return tending{held: true}
	}
	record.until = now.Add(m.ttl)
	renewed := t.record != "" && strings.HasPrefix(t.record, `{"state":"`+string(record.status.State)+`"`)
	if renewed {
		record.status.CheckedAt = now
	}
	m.records[t.shard] = record
	return tending{held: true, renewed: renewed}
}

// keys is what stands in Redis of one shard.
func (m *modelRedis) keys(shard string, now time.Time) (keys keyset) {
	if record, ok := m.records[shard]; ok && record.until.After(now) {
		text, _ := json.Marshal(record.status)
		keys.health = cell{value: string(text), exists: true}
	}
	if lease, ok := m.leases[shard]; ok && lease.until.After(now) {
		keys.lease = cell{value: lease.token, exists: true}
	}
	return keys
}

func (m *modelRedis) sweep(b *bill, all []footprint) (same []footprint) {
	want := wholeDigest(all)
	if want == "" {
		return nil
	}
	names, now := make([]string, len(all)), slices.Clone(all)
	for i, p := range all {
		names[i], now[i].print = p.shard, m.keys(p.shard, time.Now()).print()
	}
	b.reading -= b.bytes
	b.add([]string{"evalsha", strings.Repeat("x", shaBytes), "0", strings.Join(names, " ")}, 46)
	b.reading += b.bytes
	if wholeDigest(now) != want {
		return nil
	}
	return all
}

func (m *modelRedis) offer(b *bill, giver string, offers []offer) {
	for _, o := range offers {
		if m.mail[o.peer] == nil {
			m.mail[o.peer] = map[string]bool{}
		}
		m.mail[o.peer][o.letter(giver)] = true
		b.add([]string{"sadd", mailKey(o.peer), o.letter(giver)}, 4)
		b.add([]string{"pexpire", mailKey(o.peer), "3000"}, 4)
	}
}

func (m *modelRedis) takeOver(b *bill, token string, offers []offer) map[string]bool {
	got := map[string]bool{}
	for _, o := range offers {
		b.add([]string{"evalsha", strings.Repeat("x", shaBytes), "2", healthKey(o.shard), leaseKey(o.shard), token, "3000", o.peer}, 4)
		if lease := m.leases[o.shard]; lease.token == o.peer && lease.until.After(time.Now()) {
			m.leases[o.shard] = modelLease{token, time.Now().Add(m.ttl)}
			got[o.shard] = true
		}
	}
	return got
}

func (m *modelRedis) read(b *bill, shards []string) reading {
	now := time.Now()
	r := reading{shards: map[string]keyset{}, clock: now, generation: m.born}
	request, reply := []string{"evalsha", strings.Repeat("x", shaBytes), fmt.Sprint(3*len(shards) + 1), generationKey}, 8+clockBytes+wire(m.born)
	for _, s := range shards {
		keys := m.keys(s, now)
		r.shards[s] = keys
		request = append(request, healthKey(s), drainKey(s), leaseKey(s))
		reply += wire(keys.health.value, keys.lease.value) + 5
	}
	b.reading -= b.bytes
	b.add(request, reply)
	b.reading += b.bytes
	return r
}

func (m *modelRedis) take(b *bill, token string, shards []string) map[string]bool {
	held := map[string]bool{}
	for _, s := range shards {
		held[s] = m.tend(token, tended{shard: s}).held
		b.add([]string{"evalsha", strings.Repeat("x", shaBytes), "2", healthKey(s), leaseKey(s), token, "3000", ""}, 4)
	}
	return held
}

func (m *modelRedis) report(b *bill, token string, reports []report) map[string]string {
	now := time.Now()
	since := map[string]string{}
	for _, r := range reports {
		b.add([]string{"evalsha", strings.Repeat("x", shaBytes), "2", healthKey(r.shard), leaseKey(r.shard), token, "3000",
			string(r.status.State), "0", r.since, encodeTail(r.status)}, 32)
		lease := m.leases[r.shard]
		if lease.token != token || !lease.until.After(now) {
			since[r.shard] = ""
			continue
		}
		s := r.status
		s.CheckedAt = now
		if s.Since.After(now) || s.Since.IsZero() {
			s.Since = now
		}
		if s.State == Down && m.records[r.shard].status.State != Down {
			m.downs[r.shard]++
		}
		m.records[r.shard] = modelRecord{s, now.Add(m.ttl)}
		since[r.shard] = s.Since.UTC().Format(timeLayout)
	}
	return since
}

func (m *modelRedis) tell(b *bill, shards []string) {
	m.bump(shards...)
	b.add(append([]string{"evalsha", strings.Repeat("x", shaBytes), "1", changesKey}, shards...), 6)
	m.publish(strings.Join(shards, " "))
}

func (m *modelRedis) release(b *bill, token, shard string) {
	b.add([]string{"evalsha", strings.Repeat("x", shaBytes), "2", healthKey(shard), leaseKey(shard), token}, 4)
	if m.leases[shard].token == token {
		delete(m.leases, shard)
		m.tell(b, []string{shard})
	}
}

func (m *modelRedis) ask(b *bill, shard string, whom []string) time.Time {
	request := []string{"evalsha", strings.Repeat("x", shaBytes), "12"}
	hint := callForWitnesses
	for _, w := range whom {
		if m.mail[w] == nil {
			m.mail[w] = map[string]bool{}
		}
		if !m.mail[w][shard] {
			hint += w + " "
		}
		m.mail[w][shard] = true
		request = append(request, mailKey(w), w)
	}
	b.add(append(request, shard, "3000"), clockBytes)
	if hint != callForWitnesses {
		m.top++
		m.publish(hint)
	}
	return time.UnixMilli(time.Now().UnixMilli())
}

func (m *modelRedis) testify(b *bill, token, shard, word string) {
	if m.words[shard] == nil {
		m.words[shard] = map[string]testimony{}
	}
	m.words[shard][token] = testimony{word, time.Now()}
	b.add([]string{"evalsha", strings.Repeat("x", shaBytes), "1", witnessKey(shard), token, word, "3000"}, 4)
}
