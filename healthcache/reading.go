package healthcache

import (
	"cmp"
	"context"
	"errors"
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

// keyset is what was read of one shard.
type keyset struct{ health, drain, lease cell }

// reading is one look at the keys of some shards.
type reading struct {
	shards  map[string]keyset
	foreign map[string]cell // health keys of shards that are not watched here
	clock   time.Time       // Redis's; zero where it could not be had
}

// read looks at the keys of shards, and at the health keys of foreign ones, in
// one round trip; where drains stand, in a second one at their ends. It asks
// for Redis's clock unless that is known.
func (f *fleet) read(ctx context.Context, shards, foreign []string, clock time.Time) (reading, error) {
	r, err := f.readKeys(ctx, shards, foreign, clock)
	if err != nil {
		return reading{}, err
	}
	f.readEnds(ctx, r)
	return r, nil
}

func (f *fleet) readKeys(ctx context.Context, shards, foreign []string, clock time.Time) (r reading, err error) {
	keys := make([]string, 0, 3*len(shards)+len(foreign))
	for _, s := range shards {
		keys = append(keys, healthKey(s), drainKey(s), leaseKey(s))
	}
	for _, s := range foreign {
		keys = append(keys, healthKey(s))
	}
	pipe := f.client.Pipeline()
	cells := f.queueReads(ctx, pipe, keys)
	if clock.IsZero() {
		asked := pipe.Time(ctx)
		defer func() { r.clock = asked.Val() }()
	}
	// Each command's own error is looked at below.
	_, err = pipe.Exec(ctx)

	r = reading{shards: make(map[string]keyset, len(shards)), foreign: make(map[string]cell, len(foreign)), clock: clock}
	read := 0
	count := func(c cell) {
		if !c.failed {
			read++
		}
	}
	for i, s := range shards {
		r.shards[s] = keyset{cells(3 * i), cells(3*i + 1), cells(3*i + 2)}
		count(r.shards[s].health)
	}
	for i, s := range foreign {
		r.foreign[s] = cells(3*len(shards) + i)
		count(r.foreign[s])
	}
	if read == 0 {
		return reading{}, cmp.Or(err, errNothingRead)
	}
	return r, nil
}

// queueReads adds the reads of keys to pipe, and returns what gives the i-th
// of them afterwards. A single server takes one MGET; over the slots of a
// cluster that fails, and each key is a GET.
func (f *fleet) queueReads(ctx context.Context, pipe redis.Pipeliner, keys []string) func(i int) cell {
	if f.single() {
		all := pipe.MGet(ctx, keys...)
		return func(i int) cell {
			if all.Err() != nil || i >= len(all.Val()) {
				return cell{failed: true}
			}
			value, ok := all.Val()[i].(string)
			return cell{value: value, exists: ok}
		}
	}
	gets := make([]*redis.StringCmd, len(keys))
	for i, key := range keys {
		gets[i] = pipe.Get(ctx, key)
	}
	return func(i int) cell { return cellOf(gets[i]) }
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
		keys.drain.failed = end.Err() != nil
		keys.drain.left = max(end.Val(), 0)
		r.shards[shard] = keys
	}
}
