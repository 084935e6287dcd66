package sessionstore

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"github.com/shardhop/shardhop/internal/route"
)

// Route says which shard serves a session: its Group, Shard, Home and Epoch.
type Route = route.Route

// claimTries bounds how often a claim follows a stored session whose route
// vanished. It takes a Redis failover to need the second.
const claimTries = 3

// Route returns the route of the session in ctx, as this request last saw it,
// or the one that ClaimLater keeps for the session. False: the session has none, or there is no session.
func (m *Manager) Route(ctx context.Context) (Route, bool) {
	sc := m.store.scope(ctx)
	if sc == nil {
		return Route{}, false
	}
	r := sc.shown()
	return r, !r.IsZero()
}

// Claim stores next as the route of the session in ctx, if the stored route is
// still the one that Route returned; the epoch is always the next one after
// that, whatever next says. It returns the route that stands afterwards: next,
// or the winner's when another request was faster. GetString(ctx, "db_server")
// gives its shard from then on.
//
// For a session that is not stored yet, next is kept in ctx and written when
// the session is created.
//
// The write does not end with the client's context but after Config.Timeout.
// The errors are ErrSessionGone, ErrNotLoaded, ErrNoShard, ErrContended and
// Redis's own; after one of these nothing is known to be stored, and the route
// is returned as it was.
func (m *Manager) Claim(ctx context.Context, next Route) (Route, error) {
	sc := m.store.scope(ctx)
	if sc == nil {
		return Route{}, ErrNotLoaded
	}
	before := sc.shown()
	if next.IsZero() {
		return before, ErrNoShard
	}
	stands, err := m.store.claim(ctx, sc, sc.state(m.storeToken(ctx)), next)
	if err != nil {
		return before, err
	}
	m.show(ctx, stands)
	return stands, nil
}

// ClaimLater keeps next for the session in ctx, after a Claim that failed
// because of Redis, and stores it as soon as Redis can: by compare-and-set on
// the stored route that this request knows, so that a route which others stored
// meanwhile stands. Until then, this process serves the session by next: Route
// and GetString(ctx, "db_server") give it, in later requests as well.
//
// What is kept lives in this process's memory, for five minutes at most. False:
// nothing is kept, since the session is not stored or is gone, or since ten
// thousand sessions wait already, or after Close.
func (m *Manager) ClaimLater(ctx context.Context, next Route) bool {
	sc := m.store.scope(ctx)
	if sc == nil || next.IsZero() {
		return false
	}
	st := sc.state(m.storeToken(ctx))
	if st == nil || sc.view(st).gone {
		return false
	}
	d := debt{next: next, nonce: newNonce()}
	d.base, d.baseNonce = sc.current()
	d.next.Epoch = d.base.Epoch + 1
	if !m.store.debts.owe(st.key, d) {
		return false
	}
	sc.owes(d.next)
	m.show(ctx, d.next)
	return true
}

// Close ends what the manager does by itself, which is to store the routes that
// ClaimLater keeps; those that are still kept are lost, and the next rotation
// decides anew. It is idempotent and returns when that has ended. Requests are
// served on.
func (m *Manager) Close() error {
	m.store.debts.close()
	return nil
}

// show lets GetString(ctx, "db_server") give the shard of r.
func (m *Manager) show(ctx context.Context, r Route) {
	if m.GetString(ctx, fieldShard) != r.Shard {
		m.SessionManager.Put(ctx, fieldShard, r.Shard)
	}
}

// Key returns the session's key in Redis without the prefix: a hash of its
// token; empty when the session is not stored. After RenewToken it is the old
// one until the session is saved, for it is what Redis has.
func (m *Manager) Key(ctx context.Context) string {
	sc := m.store.scope(ctx)
	if sc == nil {
		return ""
	}
	if old, _, renewed := sc.renewal(); renewed && !old.gone {
		return old.key[len(m.store.prefix):]
	}
	if key, ok := m.storedKey(ctx, sc); ok {
		return key[len(m.store.prefix):]
	}
	return ""
}

// storedKey is the key in Redis of the token in ctx. False: nothing is stored
// under this token.
func (m *Manager) storedKey(ctx context.Context, sc *scope) (key string, ok bool) {
	st := sc.state(m.storeToken(ctx))
	if st == nil {
		return "", false
	}
	return st.key, !sc.view(st).gone
}

// storeToken is the token of the session in ctx as scs hands it to the store.
func (m *Manager) storeToken(ctx context.Context) string {
	return m.storeName(m.Token(ctx))
}

func (m *Manager) storeName(token string) string {
	if token == "" || !m.HashTokenInStore {
		return token
	}
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// claim makes next the route of st, or of the session to be created when st is
// nil.
func (s *store) claim(ctx context.Context, sc *scope, st *state, next Route) (Route, error) {
	if st == nil {
		return sc.keep(next), nil
	}
	if sc.view(st).gone {
		return Route{}, ErrSessionGone
	}
	ctx, cancel := s.detach(ctx)
	defer cancel()
	nonce := newNonce()
	for range claimTries {
		base, baseNonce := sc.current()
		next.Epoch = base.Epoch + 1
		o, stands, standsNonce, err := s.runClaim(ctx, st.key, base, baseNonce, next, nonce)
		if err != nil {
			return Route{}, fmt.Errorf("sessionstore: claim: %w", err)
		}
		s.debts.forget(st.key) // Redis knows better now
		switch o {
		case claimGone:
			sc.lost(st)
			return Route{}, ErrSessionGone
		case claimWon:
			sc.follow(next, nonce)
			return next, nil
		}
		sc.follow(stands, standsNonce)
		// Lost to no route at all: Redis forgot it. Claim on that.
		if !stands.IsZero() {
			return stands, nil
		}
	}
	return Route{}, ErrContended
}

// pay stores an owed route, or learns that it is out of date.
func (s *store) pay(ctx context.Context, key string, d debt) (outcome, error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	o, _, _, err := s.runClaim(ctx, key, d.base, d.baseNonce, d.next, d.nonce)
	return o, err
}
