package sessionstore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// scanCount is how many keys Redis looks at in one step of an iteration.
const scanCount = 200

// Iterate calls fn for every live session, one after the other, in the place of
// scs's own Iterate. The context that fn gets carries that session: fn may
// read, change and Commit, or Destroy it. Token gives its key without the
// prefix there, since nobody knows the token of a key. Sessions created or
// ended during the iteration may be seen or not. It does not block Redis, works
// on a cluster, and stops at the first error of fn.
func (m *Manager) Iterate(ctx context.Context, fn func(context.Context) error) error {
	return m.store.each(ctx, func(key string, rec record) error {
		id := key[len(m.store.prefix):]
		st := &state{token: m.storeName(id), key: key, values: rec.values, deadline: rec.deadline}
		sc := new(scope)
		shard := sc.loaded(st, rec, Route{})
		sc.open()
		sc.iterated = map[string][]byte{id: packRecord(rec.deadline, rec.values, shard)}
		return m.SessionManager.Iterate(m.store.withScope(ctx, sc), fn)
	})
}

// scanner is one Redis server that holds keys.
type scanner interface {
	ScanType(ctx context.Context, cursor uint64, match string, count int64, keyType string) *redis.ScanCmd
}

// each visits every live session once.
func (s *store) each(ctx context.Context, visit func(key string, rec record) error) error {
	servers, err := s.servers(ctx)
	if err != nil {
		return fmt.Errorf("sessionstore: iterate: %w", err)
	}
	seen := make(map[string]struct{})
	for _, server := range servers {
		if err := s.eachOn(ctx, server, seen, visit); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) eachOn(ctx context.Context, server scanner, seen map[string]struct{}, visit func(key string, rec record) error) error {
	match := globEscaper.Replace(s.prefix) + "*"
	var cursor uint64
	for {
		keys, next, err := server.ScanType(ctx, cursor, match, scanCount, "hash").Result()
		if err != nil {
			return fmt.Errorf("sessionstore: iterate: %w", err)
		}
		if err := s.visitPage(ctx, unseen(keys, seen), visit); err != nil {
			return err
		}
		if next == 0 {
			return nil
		}
		cursor = next
	}
}

// visitPage reads the sessions of keys in one round trip and visits them.
func (s *store) visitPage(ctx context.Context, keys []string, visit func(key string, rec record) error) error {
	if len(keys) == 0 {
		return nil
	}
	pipe := s.rdb.Pipeline()
	replies := make([]*redis.MapStringStringCmd, len(keys))
	for i, key := range keys {
		replies[i] = pipe.HGetAll(ctx, key)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("sessionstore: iterate: %w", err)
	}
	for i, key := range keys {
		rec, ok := parseRecord(replies[i].Val(), time.Now())
		if !ok || rec.taken {
			continue
		}
		if err := visit(key, rec); err != nil {
			return err
		}
	}
	return nil
}

// unseen returns the keys that are not in seen, and adds them: SCAN may give a
// key more than once.
func unseen(keys []string, seen map[string]struct{}) []string {
	fresh := keys[:0]
	for _, key := range keys {
		if _, ok := seen[key]; !ok {
			seen[key] = struct{}{}
			fresh = append(fresh, key)
		}
	}
	return fresh
}

// servers lists the servers that together hold all keys.
func (s *store) servers(ctx context.Context) ([]scanner, error) {
	var mu sync.Mutex
	var servers []scanner
	add := func(_ context.Context, server *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		servers = append(servers, server)
		return nil
	}
	switch rdb := s.rdb.(type) {
	case *redis.ClusterClient:
		err := rdb.ForEachMaster(ctx, add)
		return servers, err
	case *redis.Ring:
		err := rdb.ForEachShard(ctx, add)
		return servers, err
	}
	return []scanner{s.rdb}, nil
}

// globEscaper takes the meaning of a pattern from a prefix.
var globEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)
