package healthcache

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// fleet is what the instances share in Redis: keys and scripts, no decisions.
// It is safe for use by several goroutines.
type fleet struct {
	client redis.UniversalClient
	token  string // of this instance, and of its leases
	ttl    time.Duration
	late   time.Duration // for how long it is kept which lost drains were written again
	// ledger takes in what each beat brings.
	ledger *ledger
}

// tokenEnd is how many bytes at the end of a token are its own, and no other's.
const tokenEnd = 10

// newFleet bounds the client's own waits where it can: the contexts alone do
// not end a read of a frozen Redis unless the client was told to mind them.
func newFleet(client redis.UniversalClient, token string, cfg Config, l *ledger) *fleet {
	if single, ok := client.(*redis.Client); ok {
		client = single.WithTimeout(cfg.refreshTimeout())
	}
	return &fleet{client: client, token: token, ttl: cfg.life(), late: 2 * cfg.late(), ledger: l}
}

// single reports whether all keys lie on one server, so that one command may
// touch those of many shards. Where they may not, on a Redis Cluster and
// whatever else there is, each shard gets commands of its own.
func (f *fleet) single() bool {
	_, ok := f.client.(*redis.Client)
	return ok
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
	cmds := f.pipe(ctx, calls, script, (*redis.Script).EvalSha)
	if unknownScript(cmds) {
		return f.pipe(ctx, calls, script, (*redis.Script).Eval)
	}
	return cmds
}

func unknownScript(cmds []*redis.Cmd) bool {
	for _, cmd := range cmds {
		if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			return true
		}
	}
	return false
}

// scriptFunc runs a script by its hash or by its text.
type scriptFunc func(s *redis.Script, ctx context.Context, c redis.Scripter, keys []string, args ...any) *redis.Cmd

func (f *fleet) pipe(ctx context.Context, calls []call, script *redis.Script, eval scriptFunc) []*redis.Cmd {
	pipe := f.client.Pipeline()
	cmds := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		keys := []string{healthKey(c.shard), leaseKey(c.shard)}
		cmds[i] = eval(script, ctx, pipe, keys, append([]any{f.token}, c.args...)...)
	}
	// Each command carries its own error.
	_, _ = pipe.Exec(ctx)
	return cmds
}

// bump tells the fleet that the keys of shards changed.
func (f *fleet) bump(ctx context.Context, shards []string) error {
	args := make([]any, len(shards))
	for i, shard := range shards {
		args[i] = shard
	}
	return bumpScript.Run(ctx, f.client, []string{changesKey}, args...).Err()
}
