package sessionstore

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Iterate calls fn for every live session, one after the other, in the place of
// scs's own Iterate. The context that fn gets carries that session: fn may
// read, change and Commit, or Destroy it. Token gives its key without the
// prefix there, since nobody knows the token of a key. Sessions created or
// ended during the iteration may be seen or not. It does not block Redis, works
// on a cluster, and stops at the first error of fn.
//
// It reads every session whole; to list or count them, All is cheaper.
func (m *Manager) Iterate(ctx context.Context, fn func(context.Context) error) error {
	var stop error // of a page, which says by itself what failed
	err := m.store.pages(ctx, func(keys []string) error {
		stop = m.iterate(ctx, keys, fn)
		return stop
	})
	if err == nil || stop != nil {
		return stop
	}
	return fmt.Errorf("sessionstore: iterate: %w", err)
}

// iterate reads the sessions of keys in one round trip and visits them.
func (m *Manager) iterate(ctx context.Context, keys []string, fn func(context.Context) error) error {
	replies, err := each(ctx, m.store, keys, func(pipe redis.Pipeliner, key string) *redis.MapStringStringCmd {
		return pipe.HGetAll(ctx, key)
	})
	if err != nil {
		return fmt.Errorf("sessionstore: iterate: %w", err)
	}
	for i, key := range keys {
		rec, ok := parseRecord(replies[i].Val(), time.Now())
		if !ok || rec.taken {
			continue
		}
		if err := m.visit(ctx, key, rec, fn); err != nil {
			return err
		}
	}
	return nil
}

// visit calls fn with a context that carries the session under key.
func (m *Manager) visit(ctx context.Context, key string, rec record, fn func(context.Context) error) error {
	id := key[len(m.store.prefix):]
	st := &state{token: m.storeName(id), key: key, values: rec.values, deadline: rec.deadline}
	sc := new(scope)
	shard := sc.loaded(st, rec, Route{})
	sc.open()
	sc.iterated = map[string][]byte{id: packRecord(rec.deadline, rec.values, shard)}
	return m.SessionManager.Iterate(m.store.withScope(ctx, sc), fn)
}
