package sessionstore

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// listSteps bounds one call of List, to some 10,000 keys.
	listSteps = 50
	// endPasses bounds how often EndAll looks through all sessions, for those
	// that moved to a new token while it looked.
	endPasses = 3
)

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

// EndAll ends all sessions that hold value under key, such as those of one user
// by the id that the application stores at login, and returns how many, without
// those that ended or got a new token by themselves in the same moment. keep
// names sessions to leave, as of Manager.Key: often the one that asks. value
// must have the very type that was stored: an int is no int64.
//
// Requests of these sessions that run at the moment are served to their end and
// store nothing any more. The store keeps no index, so that a login costs
// nothing more: EndAll asks for this one value of every session, 200 in a round
// trip, and does so twice at least, for a session that got a new token while it
// looked; if one is just getting it, the second time comes after Config.Timeout.
// A million sessions take some 20,000 round trips. After an error, some may have
// been ended. A value that is stored by way of gob and holds maps cannot be
// found.
func (m *Manager) EndAll(ctx context.Context, key string, value any, keep ...string) (ended int, err error) {
	want, err := appendValue(nil, value)
	if err != nil {
		return 0, fmt.Errorf("sessionstore: end all: %w", err)
	}
	moving := false
	for pass := range endPasses {
		if moving { // a renewal stores within the timeout what it took
			if err := sleep(ctx, m.store.timeout); err != nil {
				return ended, fmt.Errorf("sessionstore: end all: %w", err)
			}
		}
		var n int
		n, moving, err = m.store.endPass(ctx, valuePrefix+key, string(want), keep)
		if ended += n; err != nil {
			return ended, fmt.Errorf("sessionstore: end all: %w", err)
		}
		if pass > 0 && n == 0 && !moving {
			break
		}
	}
	return ended, nil
}

// endPass looks through all sessions once and ends those whose field is value.
// moving says that a renewal may be storing one of them under another key.
func (s *store) endPass(ctx context.Context, field, value string, keep []string) (ended int, moving bool, err error) {
	err = s.pages(ctx, func(keys []string) error {
		n, moves, err := s.endThose(ctx, keys, field, value, keep)
		ended += n
		moving = moving || moves
		return err
	})
	return ended, moving, err
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// endThose is endPass for the sessions under keys.
func (s *store) endThose(ctx context.Context, keys []string, field, value string, keep []string) (ended int, moving bool, err error) {
	replies, err := each(ctx, s, keys, func(pipe redis.Pipeliner, key string) *redis.StringCmd {
		return pipe.HGet(ctx, key, field)
	})
	if err != nil {
		return 0, false, err
	}
	for i, key := range keys {
		if replies[i].Val() != value || slices.Contains(keep, key[len(s.prefix):]) {
			continue
		}
		// Its player may have logged in as somebody else by now.
		end, err := s.runEnd(ctx, key, field, value)
		if err != nil {
			return ended, moving, err
		}
		switch end {
		case endDone:
			ended++
		case endMoving:
			moving = true
		}
	}
	return ended, moving, nil
}
