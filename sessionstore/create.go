package sessionstore

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// create stores a new session, or the one that follows a renewed token. A
// session in which nothing was stored, or that is over, is not worth a key.
func (s *store) create(ctx context.Context, sc *scope, w write) error {
	ttl := time.Until(w.expiry)
	if ttl < time.Millisecond {
		return s.bury(ctx, sc)
	}
	values, route, keep, err := s.content(ctx, sc, w.fields)
	if err != nil || !keep {
		return err
	}
	if sc.missing != nil {
		return fmt.Errorf("sessionstore: create: %w", sc.missing)
	}
	nonce := newNonce()
	args := []any{fieldExpires, strconv.FormatInt(w.deadline, 10), fieldVersion, 1, fieldNonce, nonce}
	args = append(args, routeFields(route)...)
	for name, value := range values {
		args = append(args, name, value)
	}
	st := &state{token: w.token, key: s.key(w.token), values: w.fields,
		deadline: w.deadline, expiry: w.expiry, confirmed: true}
	made, err := s.runCreate(ctx, st.key, nonce, ttl, args)
	if err != nil {
		s.release(ctx, sc)
		return fmt.Errorf("sessionstore: create: %w", err)
	}
	if !made {
		return ErrNotLoaded
	}
	old, _, renewed := sc.renewal()
	sc.created(st, route, nonce)
	if renewed {
		s.retire(ctx, old.key)
	}
	return nil
}

// release gives back a session that was taken for a renewal which failed, so
// that its player need not wait for the end of the mark. If Redis does not
// take this either, or no time is left to ask, the mark ends by itself.
func (s *store) release(ctx context.Context, sc *scope) {
	if old, nonce, renewed := sc.renewal(); renewed && ctx.Err() == nil {
		_ = s.runRelease(ctx, old.key, nonce)
	}
}

// retire deletes the session under key, whose token was renewed. The new one
// is stored by now, so a failure is no reason to refuse the request.
func (s *store) retire(ctx context.Context, key string) {
	if err := s.remove(ctx, key); err != nil {
		s.logger.ErrorContext(ctx, "session lives on after its token was renewed", "error", err)
	}
}

// bury ends the session that a renewed token was to replace, when the new one
// is over before it is created.
func (s *store) bury(ctx context.Context, sc *scope) error {
	old, _, renewed := sc.renewal()
	if !renewed {
		return nil
	}
	if err := s.remove(ctx, old.key); err != nil {
		return err
	}
	sc.buried()
	return nil
}

// content is what a session about to be created holds: mine, and after a
// renewal also what others changed meanwhile in the session that it replaces.
// If that one is gone, a logout won, and only what this request itself stored
// goes on.
func (s *store) content(ctx context.Context, sc *scope, mine []field) (values map[string]string, r Route, keep bool, err error) {
	old, nonce, renewed := sc.renewal()
	if !renewed {
		return fieldMap(mine), sc.creationRoute(Route{}, ""), len(mine) > 0, nil
	}
	theirs, live, err := s.runTake(ctx, old.key, nonce)
	if err != nil {
		return nil, Route{}, false, fmt.Errorf("sessionstore: renew: %w", err)
	}
	own := diff(old.values, mine)
	if !live {
		values = sc.ownValues(mine, own)
		return values, sc.creationRoute(Route{}, ""), len(values) > 0, nil
	}
	return merge(theirs.values, s.atomic.widen(own, mine)), sc.creationRoute(theirs.route, theirs.nonce), true, nil
}
