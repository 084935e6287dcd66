package sessionstore

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/redis/go-redis/v9"
)

// store is the scs.CtxStore of a Manager. It is safe for use by several
// goroutines; what belongs to one request stands in its scope.
type store struct {
	rdb     redis.UniversalClient
	prefix  string
	timeout time.Duration
	logger  *slog.Logger
	circuit *circuit
	debts   *debts
	atomic  groups
	// sessions is read for the idle timeout, which scs lets its users set at
	// any time before the first request.
	sessions *scs.SessionManager
}

var (
	_ scs.CtxStore         = (*store)(nil)
	_ scs.IterableCtxStore = (*store)(nil)
)

// write is what a request wants a session to be.
type write struct {
	token    string
	fields   []field
	deadline int64     // absolute expiry, Unix milliseconds
	expiry   time.Time // of the key
}

type scopeKey struct{ s *store }

func (s *store) scope(ctx context.Context) *scope {
	sc, _ := ctx.Value(scopeKey{s}).(*scope)
	return sc
}

func (s *store) withScope(ctx context.Context, sc *scope) context.Context {
	return context.WithValue(ctx, scopeKey{s}, sc)
}

// renewingKey marks the context of a DeleteCtx that belongs to a renewal.
type renewingKey struct{}

// key names the session of token in Redis, where nobody shall find a token.
func (s *store) key(token string) string {
	var room [128]byte // for both steps, on the stack
	sum := sha256.Sum256(append(room[:0], token...))
	key := append(room[:0], s.prefix...)
	return string(base64.RawURLEncoding.AppendEncode(key, sum[:]))
}

// bound returns a context that ends when Redis has not answered in time, with
// the cause by which that is told from a caller who went away.
func (s *store) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.timeout, errNoAnswer)
}

// detach is bound without an end by the client's disconnect.
func (s *store) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	return s.bound(context.WithoutCancel(ctx))
}

// FindCtx loads a session; the first load of a token in a scope counts.
func (s *store) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	sc := s.scope(ctx)
	if sc == nil {
		return nil, false, ErrNotLoaded
	}
	if st := sc.state(token); st != nil {
		known := sc.view(st)
		return packRecord(known.deadline, known.values, ""), !known.gone, nil
	}
	key := s.key(token)
	rec, expiry, ok, err := s.fetch(ctx, key)
	if err != nil {
		return nil, false, fmt.Errorf("sessionstore: load: %w", err)
	}
	if !ok {
		return nil, false, nil
	}
	if rec.taken {
		return nil, false, fmt.Errorf("sessionstore: load: %w", ErrRenewing)
	}
	st := &state{token: token, key: key, values: rec.values, deadline: rec.deadline, expiry: expiry}
	shard := sc.loaded(st, rec, s.debts.of(key, rec.route, rec.nonce))
	return packRecord(rec.deadline, rec.values, shard), true, nil
}

// fetch reads one session in one round trip. The key's expiry is only asked
// for under an idle timeout, and zero otherwise.
func (s *store) fetch(ctx context.Context, key string) (rec record, expiry time.Time, ok bool, err error) {
	pass, err := s.circuit.enter(ctx, key)
	if err != nil {
		return record{}, time.Time{}, false, err
	}
	fields, ttl, err := s.read(ctx, key)
	s.circuit.leave(ctx, pass, key, err)
	switch {
	case err == nil:
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return record{}, time.Time{}, false, nil // whatever it is, it is no session
	default:
		return record{}, time.Time{}, false, err
	}
	now := time.Now()
	if ttl > 0 {
		expiry = now.Add(ttl)
	}
	rec, ok = parseRecord(fields, now)
	return rec, expiry, ok, nil
}

// read gets the hash of a session, and under an idle timeout its TTL.
func (s *store) read(ctx context.Context, key string) (fields map[string]string, ttl time.Duration, err error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	if s.sessions.IdleTimeout <= 0 {
		fields, err = s.rdb.HGetAll(ctx, key).Result()
		return fields, 0, err
	}
	pipe := s.rdb.Pipeline()
	hash, left := pipe.HGetAll(ctx, key), pipe.PTTL(ctx, key)
	_, err = pipe.Exec(ctx)
	return hash.Val(), left.Val(), err
}

// CommitCtx saves a session: the changes of one that was loaded in this scope,
// the whole of one that was not.
func (s *store) CommitCtx(ctx context.Context, token string, packed []byte, expiry time.Time) error {
	if len(packed) > maxSessionSize {
		return fmt.Errorf("%w: %w", ErrValue, errSessionTooLarge)
	}
	deadline, fields, err := unpack(packed)
	if err != nil {
		return err
	}
	sc := s.scope(ctx)
	if sc == nil {
		sc = new(scope) // nothing is known, so nothing can be but created
	}
	w := write{
		token:    token,
		fields:   fields,
		deadline: deadline,
		expiry:   keyExpiry(expiry, time.UnixMilli(deadline), s.grace()),
	}
	if st := sc.state(token); st != nil {
		return s.update(ctx, sc, st, w)
	}
	ctx, cancel := s.detach(ctx)
	defer cancel()
	return s.create(ctx, sc, w)
}

// update saves what w changes of st, and nothing when it changes nothing.
func (s *store) update(ctx context.Context, sc *scope, st *state, w write) error {
	old := sc.view(st)
	if old.gone {
		return ErrSessionGone
	}
	d := s.atomic.widen(diff(old.values, w.fields), w.fields)
	moved := w.deadline != old.deadline
	if !moved && d.empty() {
		return s.refresh(ctx, sc, st, w.expiry)
	}
	ctx, cancel := s.detach(ctx)
	defer cancel()
	if isOver(w.expiry) {
		return s.expire(ctx, sc, st, moved)
	}
	return s.write(ctx, sc, st, w, d, moved)
}

// write sends d, and the deadline of w if it moved.
func (s *store) write(ctx context.Context, sc *scope, st *state, w write, d delta, moved bool) error {
	ttl := time.Until(w.expiry)
	set := make([]any, 0, 2*len(d.set)+2)
	for _, f := range d.set {
		set = append(set, f.name, f.value)
	}
	if moved {
		set = append(set, fieldExpires, strconv.FormatInt(w.deadline, 10))
	} else if s.sessions.IdleTimeout <= 0 {
		ttl = 0 // another request may have moved the deadline meanwhile
	}
	live, err := s.runSave(ctx, st.key, ttl, set, d.del)
	if err != nil {
		return fmt.Errorf("sessionstore: save: %w", err)
	}
	return sc.saved(st, w, live)
}

// expire ends a session that ran out before it was saved. It deletes it only
// when this request moved the deadline: another one may have moved it the
// other way, and else the TTL does it.
func (s *store) expire(ctx context.Context, sc *scope, st *state, moved bool) error {
	if moved {
		if err := s.remove(ctx, st.key); err != nil {
			return err
		}
	}
	sc.lost(st)
	return ErrSessionGone
}

// DeleteCtx ends a session. In a renewal it only notes it: the old session
// goes when the new one is saved.
func (s *store) DeleteCtx(ctx context.Context, token string) error {
	sc := s.scope(ctx)
	if sc != nil && sc.missing != nil {
		return fmt.Errorf("sessionstore: delete: %w", sc.missing)
	}
	if token == "" {
		return nil
	}
	if sc != nil && ctx.Value(renewingKey{}) != nil {
		sc.renew(sc.state(token))
		return nil
	}
	key := s.key(token)
	var st *state
	if sc != nil {
		if st = sc.state(token); st != nil {
			key = st.key
		}
	}
	ctx, cancel := s.detach(ctx)
	defer cancel()
	if err := s.remove(ctx, key); err != nil {
		return err
	}
	if st != nil {
		sc.lost(st)
	}
	return nil
}

func (s *store) remove(ctx context.Context, key string) error {
	pass, err := s.circuit.enter(ctx, key)
	if err == nil {
		err = s.rdb.Del(ctx, key).Err()
		s.circuit.leave(ctx, pass, key, err)
	}
	if err != nil {
		return fmt.Errorf("sessionstore: delete: %w", err)
	}
	return nil
}

// AllCtx gives scs's Iterate the session that Manager.Iterate is at.
func (s *store) AllCtx(ctx context.Context) (map[string][]byte, error) {
	sc := s.scope(ctx)
	if sc == nil || sc.iterated == nil {
		return nil, ErrNotLoaded
	}
	return sc.iterated, nil
}

// Find serves callers without a context, which can have loaded nothing.
func (s *store) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

// Commit creates a session.
func (s *store) Commit(token string, packed []byte, expiry time.Time) error {
	return s.CommitCtx(context.Background(), token, packed, expiry)
}

// Delete ends a session.
func (s *store) Delete(token string) error {
	return s.DeleteCtx(context.Background(), token)
}
