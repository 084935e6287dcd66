package shardhop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

// deadline is a hook that bounds every command and every pipeline. It leaves
// subscriptions alone, which do not pass through hooks.
type deadline time.Duration

// DialHook changes nothing: the client bounds its dials itself.
func (d deadline) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook bounds one command.
func (d deadline) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return d.run(ctx, func(ctx context.Context) error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook bounds one pipeline.
func (d deadline) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return d.run(ctx, func(ctx context.Context) error { return next(ctx, cmds) })
	}
}

// run calls fn with the bound. When the bound ended it, the error says so rather
// than blame the caller's context.
func (d deadline) run(ctx context.Context, fn func(context.Context) error) error {
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= time.Duration(d) {
		return fn(ctx) // the caller's bound is the tighter one
	}
	bounded, cancel := context.WithTimeout(ctx, time.Duration(d))
	defer cancel()
	err := fn(bounded)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("redis: no answer within %v: %w", time.Duration(d), os.ErrDeadlineExceeded)
	}
	return err
}
