package sessionstore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/sessionstore"
)

// roles are those of the users in a storm, of whom two share one each, so that a
// request may change a user and not the role.
var roles = map[string]string{"0": "player", "1": "player", "2": "admin", "3": "admin"}

// storm is many requests at once with the tokens of a few sessions.
type storm struct {
	t      *testing.T
	rdb    redis.UniversalClient
	stores []*sessionstore.Manager // of as many processes

	mu     sync.Mutex // guards what the requests share
	tokens []string
	ended  map[string]bool // renewed or logged out, by a request that is over
}

// TestStorm: requests of the same sessions store, move, renew, log out and look
// at all sessions, at once and in three processes, while Redis forgets its scripts.
// What has ended stays ended, what belongs together stays together, and no
// renewal is left half-way.
func TestStorm(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		st := &storm{t: t, rdb: rdb, tokens: []string{""}, ended: map[string]bool{}}
		for range 3 {
			m := sessionstore.New(rdb, patient)
			m.IdleTimeout = time.Hour
			m.Atomic("uid", "role")
			st.stores = append(st.stores, m)
		}
		var running sync.WaitGroup
		for seed := range uint64(8) {
			running.Go(func() {
				rng := rand.New(rand.NewPCG(seed, 0))
				for range 100 {
					st.request(rng)
				}
			})
		}
		running.Wait()
		st.wantOrder()
	})
}

func (st *storm) request(rng *rand.Rand) {
	m := st.stores[rng.IntN(len(st.stores))]
	ctx, token, err := st.begin(m, rng)
	if err != nil {
		if !errors.Is(err, sessionstore.ErrRenewing) {
			st.t.Error(err)
		}
		return
	}
	if err := st.act(ctx, m, rng); err != nil {
		st.t.Error(err)
	}
	next, _, err := m.Commit(ctx)
	if err != nil && !errors.Is(err, sessionstore.ErrSessionGone) {
		st.t.Error(err)
	}
	st.finish(token, next, err == nil && m.Key(ctx) != "")
}

// begin loads the session of one of the latest tokens, which is empty if the token's
// end was known before.
func (st *storm) begin(m *sessionstore.Manager, rng *rand.Rand) (ctx context.Context, token string, err error) {
	st.mu.Lock()
	latest := st.tokens[max(0, len(st.tokens)-4):]
	token = latest[rng.IntN(len(latest))]
	ended := st.ended[token]
	st.mu.Unlock()
	ctx, err = m.Load(st.t.Context(), token)
	if err == nil && ended && m.Key(ctx) != "" {
		st.t.Error("a session came back")
	}
	return ctx, token, err
}

// act does what one of the application's handlers does.
func (st *storm) act(ctx context.Context, m *sessionstore.Manager, rng *rand.Rand) error {
	n := strconv.Itoa(rng.IntN(4))
	switch rng.IntN(11) {
	case 0, 1, 2:
		m.Put(ctx, "uid", n)
		m.Put(ctx, "role", roles[n])
	case 3, 4:
		m.Put(ctx, n, n)
	case 5, 6:
		return m.RenewToken(ctx)
	case 7:
		return m.Destroy(ctx)
	case 8:
		_, err := m.Claim(ctx, sessionstore.Route{Group: "g", Shard: n, Home: n})
		if errors.Is(err, sessionstore.ErrSessionGone) {
			return nil
		}
		return err
	case 9:
		_, err := m.CountByShard(ctx)
		return err
	case 10:
		return st.rdb.ScriptFlush(ctx).Err()
	}
	return nil
}

// finish notes that a request with token is over, and what came of it.
func (st *storm) finish(token, next string, stored bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if token != "" && next != token {
		st.ended[token] = true
	}
	if stored && next != token {
		st.tokens = append(st.tokens, next)
	}
}

// wantOrder checks what the storm left in Redis.
func (st *storm) wantOrder() {
	st.t.Helper()
	want := map[string]string{"": ""}
	for uid, role := range roles {
		want[text(uid)] = text(role)
	}
	for info, err := range st.stores[0].All(st.t.Context()) {
		if err != nil {
			st.t.Fatal(err)
		}
		key := "session:" + info.Key
		hash := fields(st.t, st.rdb, key)
		if hash["d:role"] != want[hash["d:uid"]] || hash["renewing"] != "" {
			st.t.Errorf("%s holds %q", key, hash)
		}
		if ttl := st.rdb.PTTL(st.t.Context(), key).Val(); ttl <= 0 {
			st.t.Errorf("%s lives for %v", key, ttl)
		}
	}
}
