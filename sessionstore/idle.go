package sessionstore

import "time"

// slack is how much longer than the idle timeout a key lives, so that the TTL
// need not move with every request: a twentieth, in whole seconds.
func (s *store) slack() time.Duration {
	return (max(s.sessions.IdleTimeout, 0) / 20).Truncate(time.Second)
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
