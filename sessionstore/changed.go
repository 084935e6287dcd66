package sessionstore

import (
	"context"

	"github.com/alexedwards/scs/v2"
)

// Changed reports whether this request has done anything to the session in ctx
// that would make a second run of it differ from the first: stored a value,
// even an equal one, with Put; changed or removed one, also in place; renewed
// the token, moved the session's end, ended, merged or committed it. The route
// does not count, since Claim and ClaimLater are the middleware's.
//
// It compares the encoded values, which costs what a save costs without its
// round trip. A context without a session has changed none.
func (m *Manager) Changed(ctx context.Context) bool {
	sc := m.store.scope(ctx)
	if sc == nil {
		return false
	}
	return sc.touchedByHand() || m.differs(ctx, sc)
}

// touchedByHand reports what the scope noted of the request's own doing.
func (sc *scope) touchedByHand() bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.destroyed || sc.renewed != nil || len(sc.put) > 0 {
		return true
	}
	for _, st := range sc.states {
		if st.gone || st.confirmed {
			return true
		}
	}
	return false
}

// differs compares what the session in ctx holds now with what was loaded. A
// value that cannot be encoded counts as changed: it was not loaded.
func (m *Manager) differs(ctx context.Context, sc *scope) bool {
	if m.Status(ctx) == scs.Destroyed || m.GetString(ctx, fieldShard) != sc.shown().Shard {
		return true
	}
	values := make(map[string]any)
	for _, key := range m.Keys(ctx) {
		values[key] = m.Get(ctx, key)
	}
	packed, err := m.Codec.Encode(m.Deadline(ctx), values)
	if err != nil {
		return true
	}
	deadline, fields, err := unpack(packed)
	if err != nil {
		return true
	}
	st := sc.state(m.storeToken(ctx))
	if st == nil { // a new session: it has no token unless it was renewed
		return len(fields) > 0 || m.Token(ctx) != ""
	}
	loaded := sc.view(st)
	return deadline != loaded.deadline || !diff(loaded.values, fields).empty()
}
