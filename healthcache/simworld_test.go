//go:build !race

package healthcache

import (
	"container/heap"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// world is a fleet without sockets and goroutines: the boards with all their
// decisions are the real ones; Redis, the shards and the way between them and
// the instances are modelled. Everything happens in the order of events, in
// the virtual time of a synctest bubble.
type world struct {
	cfg       Config
	rand      *rand.Rand
	redis     *modelRedis
	instances []*simInstance
	dead      map[string]bool
	loss      float64 // of probes
	queue     events
	order     int

	probes int
	probed map[string]int // probes of each shard
	// Downs of shards that live, as seen by instances that reach them.
	falseDowns, contested int
}

// simInstance is one instance: what a Cache does around its board.
type simInstance struct {
	*world
	board    *board
	token    string
	noShards bool // cut off from the shards
	noRedis  bool // cut off from Redis
	bill     bill
	probers  map[string]*simProber
	hinted   bool
	beaten   time.Time
}

type simProber struct {
	know    *knowledge
	probing bool
	wakes   int // only the latest wake-up counts
}

type event struct {
	at    time.Time
	order int
	do    func()
}

type events []event

func (e events) Len() int      { return len(e) }
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].order < e[j].order
}

const latency = time.Millisecond

func newWorld(instances, shards int, seed uint64) *world {
	cfg := Config{Probe: func(context.Context, string) Result { return Result{} }, Logger: slog.New(slog.DiscardHandler)}
	for i := range shards {
		cfg.Shards = append(cfg.Shards, fmt.Sprintf("server_%d", i+1))
	}
	cfg.Instance = "x"
	cfg = cfg.withDefaults()
	w := &world{cfg: cfg, rand: rand.New(rand.NewPCG(seed, 1)), redis: newModelRedis(cfg), dead: map[string]bool{}, probed: map[string]int{}}
	w.redis.publish = w.broadcast
	for i := range instances {
		w.instances = append(w.instances, w.join(i))
	}
	return w
}

func (w *world) join(i int) *simInstance {
	cfg := w.cfg
	cfg.Instance = fmt.Sprintf("web-%d:%d", i+1, 1000+i)
	in := &simInstance{world: w, token: cfg.Instance + "/ABCDEFGHIJ", probers: map[string]*simProber{}}
	in.board = newBoard(cfg, in.token)
	for shard, k := range in.board.shards {
		k.alone = false // it has a Redis
		in.probers[shard] = &simProber{know: k}
	}
	w.after(time.Duration(w.rand.Int64N(int64(cfg.Interval))), func() {
		in.board.begin()
		in.beatOn()
		in.wakeProbers()
	})
	return in
}

func (w *world) after(d time.Duration, do func()) {
	w.order++
	heap.Push(&w.queue, event{time.Now().Add(d), w.order, do})
}

// run lets d go by.
func (w *world) run(d time.Duration) {
	end := time.Now().Add(d)
	for len(w.queue) > 0 && !w.queue[0].at.After(end) {
		e := heap.Pop(&w.queue).(event)
		time.Sleep(time.Until(e.at))
		e.do()
	}
	time.Sleep(time.Until(end))
}

// until runs until ok, looking every so often, and tells how long it took.
func (w *world) until(limit time.Duration, ok func() bool) (time.Duration, bool) {
	const step = 20 * time.Millisecond
	for took := time.Duration(0); took < limit; took += step {
		if ok() {
			return took, true
		}
		w.run(step)
	}
	return limit, ok()
}

// afterProbe waits until shard has just been probed: the worst moment for
// anything to change, since the next probe is an interval away.
func (w *world) afterProbe(shard string) {
	before := w.probed[shard]
	w.until(5*time.Second, func() bool { return w.probed[shard] > before })
}

// holder is the number of the instance that holds the lease of shard.
func (w *world) holder(shard string) int {
	token := w.redis.leases[shard].token
	return max(slices.IndexFunc(w.instances, func(in *simInstance) bool { return in.token == token }), 0)
}

// mostLeases is how many leases one instance holds at most.
func (w *world) mostLeases() int {
	held := map[string]int{}
	most := 0
	for _, lease := range w.redis.leases {
		held[lease.token]++
		most = max(most, held[lease.token])
	}
	return most
}

// all reports whether every instance sees shard so.
func (w *world) all(shard string, ok func(View) bool) bool {
	return !slices.ContainsFunc(w.instances, func(in *simInstance) bool { return !ok((*in.board.snapshot.Load())[shard]) })
}

func (w *world) broadcast(hint string) {
	call := strings.HasPrefix(hint, callForWitnesses)
	for _, in := range w.instances {
		// Who is not called throws the call away.
		if !in.noRedis && (!call || strings.Contains(hint, in.token)) {
			w.after(latency, func() { in.hear(hint) })
		}
	}
}

// spent is the bill of all instances since the last call.
func (w *world) spent() (total, most bill) {
	for _, in := range w.instances {
		total.commands += in.bill.commands
		total.bytes += in.bill.bytes
		total.reading += in.bill.reading
		most.commands, most.bytes = max(most.commands, in.bill.commands), max(most.bytes, in.bill.bytes)
		in.bill = bill{}
	}
	return total, most
}

// hear is what the listener does, and the refresher when it is woken.
func (in *simInstance) hear(hint string) {
	in.board.overhear(hint)
	select {
	case <-in.board.hints:
	default:
		return
	}
	if in.hinted {
		return
	}
	in.hinted = true
	in.after(max(time.Until(in.beaten.Add(in.cfg.pace())), 0), func() {
		in.hinted = false
		in.refresh()
	})
}

// beatOn is what the refresher does at its ticks.
func (in *simInstance) beatOn() {
	if in.noRedis || time.Since(in.beaten) > in.cfg.Interval*3/4 || in.redis.peek(&in.bill, in.board.watching()) {
		in.refresh()
	}
	in.after(in.cfg.turn(), in.beatOn)
}

// refresh is Cache.refresh on the model.
func (in *simInstance) refresh() {
	in.beaten = time.Now()
	defer in.wakeProbers()
	if in.noRedis {
		in.board.deaf()
		in.notices()
		return
	}
	moves := in.board.moves()
	p := in.redis.beat(&in.bill, in.token, in.board.holding())
	todo := in.board.hear(p, moves)
	if len(todo.offered) > 0 {
		in.board.tookOver(in.redis.takeOver(&in.bill, in.token, todo.offered))
	}
	if len(todo.swept) > 0 {
		if same := in.redis.sweep(&in.bill, todo.swept); len(same) > 0 {
			in.board.confirmed(same)
			todo.read = nil
		}
	}
	if len(todo.read) > 0 {
		wanted := in.board.absorb(in.redis.read(&in.bill, todo.read), moves)
		if len(wanted) > 0 {
			in.board.held(in.redis.take(&in.bill, in.token, wanted))
		}
	}
	if todo.burdened {
		members := slices.Collect(maps.Keys(in.redis.members))
		in.bill.add([]string{"zrange", membersKey, "0", "-1"}, wire(members...))
		in.redis.offer(&in.bill, in.token, in.board.handovers(members))
	}
	in.report()
}

// report is Cache.report on the model, without waiting for the signal.
func (in *simInstance) report() {
	in.notices()
	if in.noRedis {
		return
	}
	for shard, word := range in.board.testimonies() {
		in.redis.testify(&in.bill, in.token, shard, word)
	}
	if out := in.board.outgoing(); len(out) > 0 {
		in.board.written(out, in.redis.report(&in.bill, in.token, out))
	}
	if news := in.board.takeNews(); len(news) > 0 {
		in.redis.tell(&in.bill, news)
	}
}

// notices looks at the changes for a down that is none.
func (in *simInstance) notices() {
	for _, n := range in.board.notices.take() {
		if n.Next.State != Down || in.dead[n.Shard] || in.noShards {
			continue
		}
		if (*in.board.snapshot.Load())[n.Shard].Contested {
			in.contested++
		} else {
			in.falseDowns++
		}
	}
}

func (in *simInstance) wakeProbers() {
	for _, p := range in.probers {
		select {
		case <-p.know.wake:
			in.prober(p)
		default:
			if p.wakes == 0 {
				in.prober(p)
			}
		}
	}
}

// prober is prober.run.
func (in *simInstance) prober(p *simProber) {
	p.wakes++
	if p.probing {
		return
	}
	r, wait := in.board.next(p.know, time.Time{})
	if r != nil {
		p.probing = true
		in.probe(p, r)
		return
	}
	turn := p.wakes
	in.after(wait, func() {
		if p.wakes == turn {
			in.prober(p)
		}
	})
}

// probe is prober.carryOut: a shard that is dead refuses, a path that is cut and
// a probe that is lost end with their time.
func (in *simInstance) probe(p *simProber, r *round) {
	ctx, cancel := in.board.open(context.Background(), p.know, r)
	in.probes++
	in.probed[p.know.shard]++
	found, rtt := Result{State: Up}, 2*latency
	limit, _ := ctx.Deadline()
	switch {
	case in.noShards || in.rand.Float64() < in.loss:
		found, rtt = Result{State: Down, Reason: "no answer"}, time.Until(limit)
	case in.dead[p.know.shard]:
		found.State, found.Reason = Down, "refused"
	}
	in.after(rtt, func() {
		cancel()
		again, accuse := in.board.conclude(p.know, r, found, rtt)
		if accuse {
			in.accuse(p.know.shard)
		}
		in.report()
		if again {
			in.probe(p, r)
			return
		}
		p.probing = false
		in.prober(p)
	})
}

// accuse is Cache.accuse on the model.
func (in *simInstance) accuse(shard string) {
	if in.noRedis {
		in.judged(shard, agreed)
		return
	}
	members := slices.Collect(maps.Keys(in.redis.members))
	in.bill.add([]string{"zrange", membersKey, "0", "-1"}, wire(members...))
	asked := witnesses(shard, in.token, in.board.proberOf(shard), members)
	since := in.redis.ask(&in.bill, shard, asked)
	in.look(shard, asked, since, time.Now().Add(in.cfg.hearing()))
}

func (in *simInstance) look(shard string, asked []string, since, end time.Time) {
	in.after(in.cfg.hearing()/20, func() {
		in.bill.add([]string{"hgetall", witnessKey(shard)}, 60*len(in.redis.words[shard]))
		v := judge(asked, in.redis.words[shard], since)
		switch {
		case v != unjudged:
			in.judged(shard, v)
		case !time.Now().Before(end):
			in.judged(shard, agreed)
		default:
			in.look(shard, asked, since, end)
		}
	})
}

func (in *simInstance) judged(shard string, v verdict) {
	if in.board.judged(shard, v) && !in.noRedis {
		in.redis.release(&in.bill, in.token, shard)
	}
	in.report()
}
