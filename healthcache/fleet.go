package healthcache

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// fleet is what the instances share in Redis: keys and scripts, no decisions.
// It is safe for use by several goroutines.
type fleet struct {
	client redis.UniversalClient
	token  string // of this instance's leases
	ttl    time.Duration
}

// newFleet bounds the client's own waits where it can: the contexts alone do
// not end a read of a frozen Redis unless the client was told to mind them.
func newFleet(client redis.UniversalClient, token string, ttl, timeout time.Duration) *fleet {
	if single, ok := client.(*redis.Client); ok {
		client = single.WithTimeout(timeout)
	}
	return &fleet{client: client, token: token, ttl: ttl}
}

// cell is the value of one key as it was read.
type cell struct {
	value  string
	exists bool
	// failed says that the key could not be read, which is not the same as
	// its absence. A key of another type than string reads as absent.
	failed bool
}

// keyset is what was read of one shard.
type keyset struct{ health, drain, lease cell }

// reading is one look at all keys.
type reading struct {
	shards map[string]keyset
	clock  time.Time // Redis's; zero where it could not be had
}

// read looks at all keys of the shards in one round trip.
func (f *fleet) read(ctx context.Context, shards []string) (reading, error) {
	keys := make([]string, 0, 3*len(shards))
	for _, s := range shards {
		keys = append(keys, healthKey(s), drainKey(s), leaseKey(s))
	}
	pipe := f.client.Pipeline()
	cells := f.queueReads(ctx, pipe, keys)
	clock := pipe.Time(ctx)
	// Each command's own error is looked at below.
	_, err := pipe.Exec(ctx)

	r := reading{shards: make(map[string]keyset, len(shards))}
	if clock.Err() == nil {
		r.clock = clock.Val()
	}
	read := 0
	for i, s := range shards {
		k := keyset{cells(3 * i), cells(3*i + 1), cells(3*i + 2)}
		r.shards[s] = k
		if !k.health.failed {
			read++
		}
	}
	if read == 0 {
		return reading{}, cmp.Or(err, errNothingRead)
	}
	return r, nil
}

// queueReads adds the reads of keys to pipe, and returns what gives the i-th
// of them afterwards. A single server takes one MGET; over the slots of a
// cluster, and of whatever else there is, that fails, and each key is a GET.
func (f *fleet) queueReads(ctx context.Context, pipe redis.Pipeliner, keys []string) func(i int) cell {
	if _, single := f.client.(*redis.Client); single {
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
	return func(i int) cell {
		value, err := gets[i].Result()
		absent := errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "WRONGTYPE")
		return cell{value: value, exists: err == nil, failed: err != nil && !absent}
	}
}

// hold takes or extends the leases of shards, and tells of each that Redis
// answered for whether this instance holds it now.
func (f *fleet) hold(ctx context.Context, shards []string) map[string]bool {
	calls := make([]call, len(shards))
	for i, s := range shards {
		calls[i] = call{shard: s, args: []any{f.ttl.Milliseconds()}}
	}
	held := make(map[string]bool, len(shards))
	for i, cmd := range f.run(ctx, holdScript, calls) {
		if n, err := cmd.Int(); err == nil {
			held[shards[i]] = n == 1
		}
	}
	return held
}

// report is one record to write.
type report struct {
	shard  string
	status Status
	age    time.Duration // since the state was entered
	since  string        // as it was written before for this state, or empty
}

// report writes records, and tells of each that Redis answered for its "since",
// empty where the lease is another's.
func (f *fleet) report(ctx context.Context, reports []report) map[string]string {
	calls := make([]call, len(reports))
	for i, r := range reports {
		calls[i] = call{shard: r.shard, args: []any{
			f.ttl.Milliseconds(), string(r.status.State), r.age.Milliseconds(), r.since, encodeTail(r.status),
		}}
	}
	since := make(map[string]string, len(reports))
	for i, cmd := range f.run(ctx, reportScript, calls) {
		if text, err := cmd.Text(); err == nil {
			since[reports[i].shard] = text
		}
	}
	return since
}

// release hands the leases of shards back.
func (f *fleet) release(ctx context.Context, shards []string) {
	calls := make([]call, len(shards))
	for i, s := range shards {
		calls[i] = call{shard: s}
	}
	f.run(ctx, releaseScript, calls)
}

// call is one run of a script for one shard.
type call struct {
	shard string
	args  []any // after the token
}

// run runs a script for many shards in one round trip, by its hash; where
// Redis does not know it (any more), once more by its text.
func (f *fleet) run(ctx context.Context, script *redis.Script, calls []call) []*redis.Cmd {
	if len(calls) == 0 {
		return nil
	}
	cmds := f.pipe(ctx, calls, script.EvalSha)
	for _, cmd := range cmds {
		if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			return f.pipe(ctx, calls, script.Eval)
		}
	}
	return cmds
}

type evalFunc func(ctx context.Context, c redis.Scripter, keys []string, args ...any) *redis.Cmd

func (f *fleet) pipe(ctx context.Context, calls []call, eval evalFunc) []*redis.Cmd {
	pipe := f.client.Pipeline()
	cmds := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		keys := []string{healthKey(c.shard), leaseKey(c.shard)}
		cmds[i] = eval(ctx, pipe, keys, append([]any{f.token}, c.args...)...)
	}
	// Each command carries its own error.
	_, _ = pipe.Exec(ctx)
	return cmds
}

func (f *fleet) setDrain(ctx context.Context, shard, reason string, ttl time.Duration) error {
	return f.client.Set(ctx, drainKey(shard), reason, ttl).Err()
}

func (f *fleet) clearDrain(ctx context.Context, shard string) error {
	return f.client.Del(ctx, drainKey(shard)).Err()
}
