package shardrouter

import "context"

// era is a stretch of time between two deaths of a shard. Every server
// connection belongs to the era in which it was opened; the era's end cuts
// all of them, and wakes everybody who waits for the shard.
type era struct {
	ctx context.Context
	end context.CancelFunc
}

func newEra() *era {
	ctx, end := context.WithCancel(context.Background())
	return &era{ctx: ctx, end: end}
}

func (e *era) ended() bool { return e.ctx.Err() != nil }
