package lab

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// NoHook is a redis.Hook that does nothing, to embed in one that does one thing.
// It is safe for use by several goroutines.
type NoHook struct{}

// DialHook returns next.
func (NoHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook returns next.
func (NoHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook returns next.
func (NoHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ScriptsTwice is a redis.Hook that sends every script and every delete again, as
// go-redis does when an answer got lost: the caller sees what the second run
// says. It is safe for use by several goroutines.
type ScriptsTwice struct{ NoHook }

// ProcessHook sends a script or delete, drops the answer, and sends it again.
func (ScriptsTwice) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch cmd.Name() {
		case "eval", "evalsha", "del":
			_ = next(ctx, redis.NewCmd(ctx, cmd.Args()...))
		}
		return next(ctx, cmd)
	}
}
