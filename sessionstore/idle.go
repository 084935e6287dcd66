package sessionstore

import (
	"context"
	"time"
)

// slack is how much longer than the idle timeout a key lives, so that the TTL
// need not move with every request: a twentieth.
func (s *store) slack() time.Duration {
	return max(s.sessions.IdleTimeout, 0) / 20
}

// keyExpiry is when the key of a session ends that scs wants to end at expiry.
func keyExpiry(expiry, deadline time.Time, slack time.Duration) time.Time {
	if end := expiry.Add(slack); end.Before(deadline) {
		return end
	}
	return deadline
}

// touchDue reports whether an otherwise unchanged session needs its TTL moved
// from have to want.
func (s *store) touchDue(have, want time.Time) bool {
	return s.sessions.IdleTimeout > 0 && want.Sub(have).Abs() > s.slack()
}

// touch moves the end of a session whose data did not change. If that fails,
// the answer stands: the session is as good as before, and the next request
// tries again.
func (s *store) touch(ctx context.Context, sc *scope, st *state, expiry time.Time) error {
	live, err := s.runTouch(ctx, st.key, time.Until(expiry))
	switch {
	case err != nil:
		s.logger.WarnContext(ctx, "idle timeout of a session not moved", "error", err)
	case !live:
		sc.lost(st)
		return ErrSessionGone
	default:
		sc.touched(st, expiry)
	}
	return nil
}
