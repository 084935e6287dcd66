package healthcache

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// cell is the value of one key as it was read.
type cell struct {
	value  string
	exists bool
	// failed says that the key could not be read, which is not the same as
	// its absence. A key of another type than string reads as absent.
	failed bool
	// left is the time until the key ends, where that was asked for; zero: it
	// has no end.
	left time.Duration
}

// doubtAbsence takes a key that is not there for one that could not be read.
func (c *cell) doubtAbsence() { c.failed = c.failed || !c.exists }

// keyset is what was read of one shard.
type keyset struct{ health, drain, lease cell }

// reading is one look at the keys of some shards.
type reading struct {
	shards  map[string]keyset
	foreign map[string]cell // health keys of shards that are not watched here
	clock   time.Time       // Redis's; zero where it could not be had
	// generation is that of the fleet's keys, as they were at that moment.
	generation string
}

// read looks at the keys of shards, and at the health keys of foreign ones, in
// one round trip; where drains stand, in a second one at their ends. clock is
// Redis's where that is known from elsewhere.
func (f *fleet) read(ctx context.Context, shards, foreign []string, clock time.Time) (reading, error) {
	r, err := f.readKeys(ctx, shards, foreign, clock)
	if err != nil {
		return reading{}, err
	}
	f.readEnds(ctx, r)
	return r, nil
}

func (f *fleet) readKeys(ctx context.Context, shards, foreign []string, clock time.Time) (reading, error) {
	keys := make([]string, 0, 3*len(shards)+len(foreign)+1)
	for _, s := range shards {
		keys = append(keys, healthKey(s), drainKey(s), leaseKey(s))
	}
	for _, s := range foreign {
		keys = append(keys, healthKey(s))
	}
	keys = append(keys, generationKey)
	cells, now, err := f.readCells(ctx, keys)
	if clock.IsZero() {
		clock = now
	}
	r := reading{
		shards: make(map[string]keyset, len(shards)), foreign: make(map[string]cell, len(foreign)),
		clock: clock, generation: cells[len(cells)-1].value,
	}
	read := 0
	count := func(c cell) {
		if !c.failed {
			read++
		}
	}
	for i, s := range shards {
		r.shards[s] = keyset{cells[3*i], cells[3*i+1], cells[3*i+2]}
		count(r.shards[s].health)
	}
	for i, s := range foreign {
		r.foreign[s] = cells[3*len(shards)+i]
		count(r.foreign[s])
	}
	if read == 0 {
		return reading{}, cmp.Or(err, errNothingRead)
	}
	return r, nil
}

// readCells reads keys, and Redis's clock; zero where that could not be had. A
// single server takes one command; over the slots of a cluster each key is one.
func (f *fleet) readCells(ctx context.Context, keys []string) (cells []cell, clock time.Time, err error) {
	size := len(keys)
	if !f.single() {
		size = 1
	}
	chunks := slices.Collect(slices.Chunk(keys, max(size, 1)))
	cmds, err := f.readChunks(ctx, chunks, (*redis.Script).EvalSha)
	if unknownScript(cmds) {
		cmds, err = f.readChunks(ctx, chunks, (*redis.Script).Eval)
	}
	cells = make([]cell, 0, len(keys))
	for i, cmd := range cmds {
		texts, now := decodeTexts(cmd, len(chunks[i]))
		cells = append(cells, texts...)
		if clock.IsZero() {
			clock = now
		}
	}
	return cells, clock, err
}

// readChunks has each command carry its own error, and returns the first of them.
func (f *fleet) readChunks(ctx context.Context, chunks [][]string, eval scriptFunc) ([]*redis.Cmd, error) {
	pipe := f.client.Pipeline()
	cmds := make([]*redis.Cmd, len(chunks))
	for i, keys := range chunks {
		cmds[i] = eval(readScript, ctx, pipe, keys)
	}
	_, err := pipe.Exec(ctx)
	return cmds, err
}

// decodeTexts reads the reply to one command that asked for n texts.
func decodeTexts(cmd *redis.Cmd, n int) (cells []cell, clock time.Time) {
	cells = make([]cell, n)
	reply, err := cmd.Slice()
	if err != nil || len(reply) != 2 {
		return failed(cells), time.Time{}
	}
	texts, _ := reply[1].([]any)
	if len(texts) != n {
		return failed(cells), time.Time{}
	}
	for i, text := range texts {
		cells[i].value, cells[i].exists = text.(string)
	}
	now, _ := reply[0].(int64)
	return cells, time.UnixMilli(now)
}

// failed marks all cells as not read.
func failed(cells []cell) []cell {
	for i := range cells {
		cells[i].failed = true
	}
	return cells
}

func cellOf(cmd *redis.StringCmd) cell {
	value, err := cmd.Result()
	absent := errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "WRONGTYPE")
	return cell{value: value, exists: err == nil, failed: err != nil && !absent}
}

// readEnds adds to the drains that stand when they end. One that could not be
// asked for counts as not read.
func (f *fleet) readEnds(ctx context.Context, r reading) {
	pipe := f.client.Pipeline()
	ends := map[string]*redis.DurationCmd{}
	for shard, keys := range r.shards {
		if keys.drain.exists {
			ends[shard] = pipe.PTTL(ctx, drainKey(shard))
		}
	}
	if len(ends) == 0 {
		return
	}
	_, _ = pipe.Exec(ctx)
	for shard, end := range ends {
		keys := r.shards[shard]
		keys.drain.ends(end)
		r.shards[shard] = keys
	}
}

// noKey is the answer to PTTL for a key that is not there.
const noKey = time.Duration(-2)

// ends takes in when the key ends. One that went since its value was read counts
// as not read: an order whose end is unknown would be taken for one without.
func (c *cell) ends(ttl *redis.DurationCmd) {
	c.failed = c.failed || ttl.Err() != nil || c.exists && ttl.Val() == noKey
	c.left = max(ttl.Val(), 0)
}
