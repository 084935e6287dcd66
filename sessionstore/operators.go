package sessionstore

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/redis/go-redis/v9"
)

// listSteps bounds one call of List, to some 10,000 keys.
const listSteps = 50

// Info is what an operator sees of a session: nothing that a player stored in
// it, and no token.
type Info struct {
	// Key is the session's key in Redis without the prefix, as of Manager.Key.
	Key string
	// Route is the zero route while the session has none.
	Route Route
	// Expires is the absolute expiry. An idle timeout may end it sooner.
	Expires time.Time
}

// All yields every live session once, in no order. Sessions that are created,
// ended or renewed meanwhile may be yielded or not. It ends after an error,
// which it yields with the zero Info. It asks Redis for 200 keys at a time and
// does not block it: a million sessions take some 10,000 round trips.
func (m *Manager) All(ctx context.Context) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		stopped := false
		err := m.store.pages(ctx, func(keys []string) error {
			infos, err := m.store.infos(ctx, keys)
			for _, info := range infos {
				if stopped = !yield(info, nil); stopped {
					return errStopped
				}
			}
			return err
		})
		if err != nil && !stopped {
			yield(Info{}, fmt.Errorf("sessionstore: all: %w", err))
		}
	}
}

// CountByShard counts the live sessions of every shard, and under "" those that
// have no route. Its cost is that of All.
func (m *Manager) CountByShard(ctx context.Context) (map[string]int, error) {
	count := map[string]int{}
	for info, err := range m.All(ctx) {
		if err != nil {
			return nil, err
		}
		count[info.Route.Shard]++
	}
	return count, nil
}

// List returns some live sessions of shard, or of all shards if it is empty,
// and the cursor with which the next call goes on. It begins with an empty
// cursor, and the last page returns one. A page may have fewer than limit
// sessions, also none, since a call looks at a bounded number of keys; and it
// may have up to 200 more, since it ends with a whole step of a scan. A session
// may be on two pages.
//
// The error is ErrCursor if cursor is none of List's, or if the cluster has
// changed meanwhile; begin again then.
func (m *Manager) List(ctx context.Context, shard, cursor string, limit int) (sessions []Info, next string, err error) {
	at, err := parsePosition(cursor)
	if err != nil {
		return nil, "", err
	}
	servers, err := m.store.servers(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("sessionstore: list: %w", err)
	}
	for range listSteps {
		keys, then, more, err := m.store.step(ctx, servers, at)
		if err != nil {
			return nil, "", fmt.Errorf("sessionstore: list: %w", err)
		}
		infos, err := m.store.infos(ctx, keys)
		if err != nil {
			return nil, "", fmt.Errorf("sessionstore: list: %w", err)
		}
		for _, info := range infos {
			if shard == "" || info.Route.Shard == shard {
				sessions = append(sessions, info)
			}
		}
		if !more {
			return sessions, "", nil
		}
		if at = then; len(sessions) >= limit {
			break
		}
	}
	return sessions, at.String(), nil
}

// infos reads what All shows of the sessions under keys.
func (s *store) infos(ctx context.Context, keys []string) ([]Info, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	names := []string{fieldShard, fieldHome, fieldGroup, fieldEpoch, fieldSettled, fieldExpires, fieldVersion, fieldRenewing}
	replies, err := each(ctx, s, keys, func(pipe redis.Pipeliner, key string) *redis.SliceCmd {
		return pipe.HMGet(ctx, key, names...)
	})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	infos := make([]Info, 0, len(keys))
	for i, reply := range replies {
		fields := make(map[string]string, len(names))
		for j, value := range reply.Val() {
			fields[names[j]], _ = value.(string)
		}
		if rec, ok := parseRecord(fields, now); ok && !rec.taken {
			infos = append(infos, Info{keys[i][len(s.prefix):], rec.route, time.UnixMilli(rec.deadline).UTC()})
		}
	}
	return infos, nil
}
