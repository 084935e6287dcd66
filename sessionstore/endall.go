package sessionstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// endPasses bounds how often EndAll looks through all sessions, for those that
// moved to a new token while it looked.
const endPasses = 5

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
// A million sessions take some 20,000 round trips. A session that gets one new
// token after the other can still slip through; where EndAll sees that it may
// have, up to the fifth time, the error is ErrContended. After an error, some
// may have been ended. A value that is stored by way of gob and holds maps
// cannot be found.
func (m *Manager) EndAll(ctx context.Context, key string, value any, keep ...string) (ended int, err error) {
	want, err := appendValue(nil, value)
	if err != nil {
		return 0, fmt.Errorf("sessionstore: end all: %w", err)
	}
	var pass sweep
	for n := range endPasses {
		if pass.moving { // a renewal stores within the timeout what it took
			err = sleep(ctx, m.store.timeout)
		}
		if err == nil {
			pass, err = m.store.endPass(ctx, valuePrefix+key, string(want), keep)
			ended += pass.ended
		}
		if err != nil {
			return ended, fmt.Errorf("sessionstore: end all: %w", err)
		}
		if n > 0 && pass == (sweep{}) {
			return ended, nil
		}
	}
	if pass.moving || pass.missed {
		return ended, fmt.Errorf("sessionstore: end all: %w", ErrContended)
	}
	return ended, nil // what was found last are logins since
}

// sweep is what was found while ending sessions.
type sweep struct {
	ended  int
	moving bool // a renewal may be storing one of them under another key
	missed bool // a key was gone when it was looked into: it may be under another
}

func (sw sweep) and(other sweep) sweep {
	return sweep{sw.ended + other.ended, sw.moving || other.moving, sw.missed || other.missed}
}

// endPass looks through all sessions once and ends those whose field is value.
func (s *store) endPass(ctx context.Context, field, value string, keep []string) (pass sweep, err error) {
	err = s.pages(ctx, func(keys []string) error {
		page, err := s.endThose(ctx, keys, field, value, keep)
		pass = pass.and(page)
		return err
	})
	return pass, err
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
func (s *store) endThose(ctx context.Context, keys []string, field, value string, keep []string) (page sweep, err error) {
	replies, err := each(ctx, s, keys, func(pipe redis.Pipeliner, key string) *redis.SliceCmd {
		return pipe.HMGet(ctx, key, field, fieldVersion)
	})
	if err != nil {
		return sweep{}, err
	}
	for i, key := range keys {
		held, version := replies[i].Val()[0], replies[i].Val()[1]
		page.missed = page.missed || version == nil
		if held != value || slices.Contains(keep, key[len(s.prefix):]) {
			continue
		}
		// Its player may have logged in as somebody else by now.
		end, err := s.runEnd(ctx, key, field, value)
		if err != nil {
			return page, err
		}
		switch end {
		case endDone:
			page.ended++
		case endMoving:
			page.moving = true
		}
	}
	return page, nil
}
