package sessionstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/lab"
)

// leaver lets a caller go away while Redis runs a script for it.
type leaver struct{ lab.NoHook }

// leaveKey is where the caller's context.CancelFunc is in its context.
type leaveKey struct{}

func (leaver) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		leave, ok := ctx.Value(leaveKey{}).(context.CancelFunc)
		if !ok || cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		leave()
		cmd.SetErr(ctx.Err())
		return ctx.Err()
	}
}

// TestOperatorsWhoLeave while sessions are ended for them say nothing about
// Redis: players are served on.
func TestOperatorsWhoLeave(t *testing.T) {
	rdb := miniClient(t)
	m, token := stored(t, rdb)
	rdb.AddHook(leaver{})
	for range 5 {
		ctx, leave := context.WithCancel(t.Context())
		if _, err := m.EndAll(context.WithValue(ctx, leaveKey{}, leave), "uid", "7"); !errors.Is(err, context.Canceled) {
			t.Errorf("ending: %v", err)
		}
	}
	if got := m.GetString(load(t, m, token), "uid"); got != "7" {
		t.Errorf("uid is %q", got)
	}
}
