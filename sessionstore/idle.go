package sessionstore

import (
	"context"
	"time"

	"github.com/alexedwards/scs/v2"
)

// slack is how far the end of an idle session may be off, so that it need not
// move with every request: a twentieth of the idle timeout.
func (s *store) slack() time.Duration {
	return max(s.sessions.IdleTimeout, 0) / 20
}

// grace is how much longer than the idle timeout a key lives: the slack, so that
// nobody is logged out early. Timeouts below a second are those of tests, which
// wait for the end of a session; there it may come that much early instead.
func (s *store) grace() time.Duration {
	if s.sessions.IdleTimeout < time.Second {
		return 0
	}
	return s.slack()
}

// keyExpiry is when the key of a session ends that scs wants to end at expiry.
func keyExpiry(expiry, deadline time.Time, grace time.Duration) time.Time {
	if end := expiry.Add(grace); end.Before(deadline) {
		return end
	}
	return deadline
}

// isOver reports whether nothing is left of a session that ends at expiry, in
// the milliseconds that Redis counts.
func isOver(expiry time.Time) bool { return time.Until(expiry) < time.Millisecond }

// touchDue reports whether an otherwise unchanged session needs its TTL moved
// from have to want.
func (s *store) touchDue(have, want time.Time) bool {
	return s.sessions.IdleTimeout > 0 && want.Sub(have).Abs() > s.slack()
}

// refresh moves the end of a session whose data did not change to expiry, if it
// is far enough off.
func (s *store) refresh(ctx context.Context, sc *scope, st *state, expiry time.Time) error {
	old := sc.view(st)
	switch {
	case old.gone:
		return ErrSessionGone
	case isOver(expiry): // the TTL ends it, or another request moved its deadline
		sc.lost(st)
		return ErrSessionGone
	case !s.touchDue(old.expiry, expiry):
		return nil
	}
	ctx, cancel := s.detach(ctx)
	defer cancel()
	return s.touch(ctx, sc, st, expiry)
}

// touch sends expiry to Redis. If that fails, the answer stands: the session is
// as good as before, and the next request tries again.
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

// Status tells what this request did to the session in ctx, in the place of
// scs's own Status. As under scs, a stored session is Modified from its load on
// where there is an idle timeout, for then it has to be committed; under Iterate
// it is not.
func (m *Manager) Status(ctx context.Context) scs.Status {
	status := m.SessionManager.Status(ctx)
	if status != scs.Unmodified || m.IdleTimeout <= 0 || m.Token(ctx) == "" {
		return status
	}
	if sc := m.store.scope(ctx); sc != nil && sc.iterated != nil {
		return status
	}
	return scs.Modified
}

// withoutIdle returns the embedded manager without its idle timeout, under which
// scs marks every session as modified when it loads it. What a request has not
// touched then need not be encoded to find out that it did not change.
func (m *Manager) withoutIdle() *scs.SessionManager {
	if m.IdleTimeout <= 0 {
		return m.SessionManager
	}
	sessions := *m.SessionManager
	sessions.IdleTimeout = 0
	return &sessions
}

// refresh saves a session that the handler stored nothing in: its end, and the
// values that it changed in place, which scs saves under an idle timeout. It
// returns the session's token, or "" if there is nothing to save.
func (m *Manager) refresh(ctx context.Context) (token string, err error) {
	if m.IdleTimeout <= 0 {
		return "", nil
	}
	token = m.Token(ctx)
	sc := m.store.scope(ctx)
	st := sc.state(m.storeName(token))
	if st == nil {
		return "", nil
	}
	if m.changedInPlace(ctx, sc.view(st).values) {
		token, _, err = m.Commit(ctx)
		return token, err
	}
	deadline := m.Deadline(ctx)
	expiry := keyExpiry(time.Now().Add(m.IdleTimeout), deadline, m.store.grace())
	return token, m.store.refresh(ctx, sc, st, expiry)
}

// changedInPlace reports whether a value is not what was loaded. Only slices,
// maps and what gob encodes can change without being stored anew.
func (m *Manager) changedInPlace(ctx context.Context, loaded []field) bool {
	var now []byte
	for _, f := range loaded {
		if !refersToMore(f.value) {
			continue
		}
		var err error
		now, err = appendValue(now[:0], m.Get(ctx, f.name[len(valuePrefix):]))
		if err != nil || string(now) != f.value && !sameValue(f.value, string(now)) {
			return true
		}
	}
	return false
}
