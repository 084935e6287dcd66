package sessionstore_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/lab"
)

// eachRedis runs test against miniredis and a real Redis, and against both with
// every script sent twice.
func eachRedis(t *testing.T, test func(t *testing.T, rdb redis.UniversalClient)) {
	t.Helper()
	for _, repeat := range []bool{false, true} {
		run := func(rdb *redis.Client) func(t *testing.T) {
			return func(t *testing.T) {
				if repeat {
					rdb.AddHook(lab.ScriptsTwice{})
				}
				test(t, rdb)
			}
		}
		name := ""
		if repeat {
			name = ", scripts twice"
		}
		t.Run("miniredis"+name, run(miniClient(t)))
		t.Run("redis"+name, run(client(t, lab.Redis(t).Addr())))
	}
}

func miniClient(t *testing.T) *redis.Client {
	t.Helper()
	return client(t, miniredis.RunT(t).Addr())
}

func client(t *testing.T, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1,
		ReadTimeout: patience, WriteTimeout: patience,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// counter counts round trips, and the commands in them.
type counter struct {
	lab.NoHook
	trips atomic.Int64

	mu    sync.Mutex
	names []string
}

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count(cmd)
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.count(cmds...)
		return next(ctx, cmds)
	}
}

func (c *counter) count(cmds ...redis.Cmder) {
	c.trips.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cmd := range cmds {
		c.names = append(c.names, cmd.Name())
	}
}

// reset returns what was counted since the last reset.
func (c *counter) reset() (trips int64, names string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	names, c.names = strings.Join(c.names, " "), nil
	return c.trips.Swap(0), names
}

// breakable returns a Redis that can be told to fail.
func breakable(t *testing.T) (*miniredis.Miniredis, *redis.Client) {
	t.Helper()
	mini := miniredis.RunT(t)
	return mini, client(t, mini.Addr())
}

// failing lets some commands pass, fails one, and lets all pass again.
type failing struct {
	lab.NoHook
	passes atomic.Int64 // before the one that fails; negative: none fails
}

func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if f.passes.Load() >= 0 && f.passes.Add(-1) < 0 {
			err := errors.New("connection lost")
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

// noDeletes fails every DEL.
type noDeletes struct{ lab.NoHook }

func (noDeletes) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "del" {
			return next(ctx, cmd)
		}
		err := errors.New("connection lost")
		cmd.SetErr(err)
		return err
	}
}
