package sessionstore

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/redis/go-redis/v9"
)

const (
	defaultPrefix     = "session:"
	defaultTimeout    = 800 * time.Millisecond
	defaultRetryAfter = time.Second
)

// Config configures a [Manager]. The zero value is usable.
type Config struct {
	// Prefix of the Redis keys. Default "session:".
	Prefix string
	// Timeout bounds a load and a save. Loading ends with the client's context
	// too, writing does not. Default 800ms, so that a player hears within a
	// second that Redis is gone. It binds a silent server only when the client
	// was made with ContextTimeoutEnabled, as ClientOptions does; go-redis
	// ignores the deadlines of contexts otherwise and waits for its own
	// timeouts.
	Timeout time.Duration
	// RetryAfter is what a 503 tells the client to wait, rounded up to whole
	// seconds. Default 1s.
	RetryAfter time.Duration
	// Optional tells which requests need no session. One that names a session
	// which cannot be loaded, since Redis fails, is then served without it, as
	// a visitor's, in the place of a 503; Manager.Degraded reports it. Such a
	// request cannot store anything: if it tries, its answer is the 503, and no
	// cookie goes out. Default: every request needs its session.
	Optional func(*http.Request) bool
	// Logger takes what went wrong with Redis. Default slog.Default().
	Logger *slog.Logger
}

// Manager is an scs.SessionManager whose sessions live in Redis, one hash per
// session, with the route beside the application's values. Configure and use
// the embedded manager as scs documents, except that Store and Codec belong to
// this package and must stay as they are. Its methods are safe for use by
// several goroutines.
type Manager struct {
	*scs.SessionManager

	store      *store
	retryAfter time.Duration
	optional   func(*http.Request) bool
	logger     *slog.Logger
}

// New returns a manager on rdb, with scs's defaults: a cookie called "session",
// HttpOnly and SameSite Lax, and sessions of 24 hours without idle timeout. It
// panics when rdb is nil or a duration of cfg is negative.
func New(rdb redis.UniversalClient, cfg Config) *Manager {
	if rdb == nil {
		panic("sessionstore: New needs a Redis client")
	}
	if cfg.Timeout < 0 || cfg.RetryAfter < 0 {
		panic("sessionstore: Config has a negative duration")
	}
	cfg = cfg.withDefaults()
	sessions := scs.New()
	st := &store{
		rdb: rdb, prefix: cfg.Prefix, timeout: cfg.Timeout, logger: cfg.Logger,
		circuit: newCircuit(rdb, cfg.Logger), atomic: groups{}, sessions: sessions,
	}
	st.debts = newDebts(st.pay, cfg.Logger)
	m := &Manager{
		SessionManager: sessions,
		store:          st,
		retryAfter:     cfg.RetryAfter,
		optional:       cfg.Optional,
		logger:         cfg.Logger,
	}
	sessions.Store = m.store
	sessions.Codec = newCodec()
	sessions.ErrorFunc = m.unavailable
	sessions.Cookie.Name = "session"
	sessions.Cookie.HttpOnly = true
	sessions.Cookie.SameSite = http.SameSiteLaxMode
	return m
}

func (c Config) withDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = defaultPrefix
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.RetryAfter == 0 {
		c.RetryAfter = defaultRetryAfter
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Load returns a context that carries the session of token, in the place of
// scs's own Load. An unknown token gives a new session, which is not stored
// before something is put into it and it is committed; an empty one does so
// without asking Redis.
func (m *Manager) Load(ctx context.Context, token string) (context.Context, error) {
	sc := m.store.scope(ctx)
	if sc == nil {
		sc = new(scope)
		ctx = m.store.withScope(ctx, sc)
	}
	loaded, err := m.withoutIdle().Load(ctx, token)
	sc.open()
	return loaded, err
}

// Put stores val under key, in the place of scs's own Put. It notes that the
// request stored the key even when the value is the one that was there, which
// counts when the token is renewed and the old session was logged out.
func (m *Manager) Put(ctx context.Context, key string, val any) {
	m.SessionManager.Put(ctx, key, val)
	if sc := m.store.scope(ctx); sc != nil {
		sc.puts(key)
	}
}

// RenewToken gives the session a new token, in the place of scs's own
// RenewToken. The route goes along. The old session ends when the new one is
// saved, with what other requests stored in it by then; if it is gone by then,
// the new one holds only what this request itself stored. If the save fails,
// the old token stays the valid one.
func (m *Manager) RenewToken(ctx context.Context) error {
	return m.SessionManager.RenewToken(context.WithValue(ctx, renewingKey{}, true))
}

// Destroy ends the session in Redis at once, in the place of scs's own
// Destroy, and its route in ctx with it. What is stored afterwards in this
// request goes into a new session.
func (m *Manager) Destroy(ctx context.Context) error {
	sc := m.store.scope(ctx)
	if sc == nil {
		return m.SessionManager.Destroy(ctx)
	}
	if old, _, ok := sc.renewal(); ok {
		// The token was renewed but not saved: the old session still lives.
		if err := m.store.DeleteCtx(ctx, old.token); err != nil {
			return err
		}
	}
	if err := m.SessionManager.Destroy(ctx); err != nil {
		return err
	}
	sc.forget()
	return nil
}
