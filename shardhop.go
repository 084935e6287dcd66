package shardhop

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/envread"
	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/sessionstore"
	"github.com/shardhop/shardhop/shardrouter"
)

// Hop is a session store, a router and a middleware that belong together. Its
// fields are set by [Open] and must not be changed; its methods are safe for use
// by several goroutines.
type Hop struct {
	// Sessions holds the players' values and routes. Configure its embedded scs
	// manager before it serves.
	Sessions *sessionstore.Manager
	// Router lends connections without HTTP, as for jobs and migrations, and
	// tells the health of the shards.
	Router *shardrouter.Router
	// Redis is where sessions and health live. A client that Open made bounds
	// every command to a second in all; commands that block need another.
	Redis redis.UniversalClient

	lend  func(http.Handler) http.Handler // middleware.New
	close func() error
}

// Open starts everything that cfg describes. A Redis or a shard that is down is
// no error, since both come back; a malformed Config is, and the error names
// every problem at once. ctx bounds the start, and nothing hangs on it after
// Open returned.
func Open(ctx context.Context, cfg Config) (*Hop, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	report := envread.New(nil)
	report.Add(errors.Join(cfg.problems()...))
	rdb, ours, err := cfg.redisClient()
	report.Add(err)

	routerConfig := cfg.Router
	if routerConfig.Redis == nil {
		routerConfig.Redis = rdb
	}
	router, err := shardrouter.New(routerConfig)
	report.Add(err)
	report.Add(cfg.unknownGroup(router))

	closeAll := sync.OnceValue(func() error { return closeParts(router, rdb, ours) })
	if err := report.Err(); err != nil {
		return nil, errors.Join(err, closeAll())
	}
	if ours {
		reportRedis(ctx, rdb, cfg.Router.Logger)
	}

	sessions := newSessions(rdb, cfg)
	mw := cfg.Middleware
	mw.Sessions, mw.Router = sessions, router
	return &Hop{
		Sessions: sessions,
		Router:   router,
		Redis:    rdb,
		lend:     middleware.New(mw),
		close:    func() error { return errors.Join(sessions.Close(), closeAll()) },
	}, nil
}

// Handler serves next with the session of the request's cookie and, within it, a
// connection of the player's shard. It has the shape of a middleware, so that
// r.Use(hop.Handler) works with chi.
func (h *Hop) Handler(next http.Handler) http.Handler {
	return h.Sessions.LoadAndSave(h.lend(next))
}

// Close stops the router, and closes the Redis client if Open made it. Let the
// HTTP server shut down first. It is idempotent, and returns when every
// goroutine of the library has ended.
func (h *Hop) Close() error { return h.close() }

func newSessions(rdb redis.UniversalClient, cfg Config) *sessionstore.Manager {
	sessions := sessionstore.New(rdb, cfg.Sessions)
	if cfg.SessionLifetime > 0 {
		sessions.Lifetime = cfg.SessionLifetime
	}
	sessions.IdleTimeout = cfg.SessionIdleTimeout
	sessions.Cookie.Secure = cfg.CookieSecure
	return sessions
}

// closeParts closes what was opened: the router first, which still uses Redis.
func closeParts(router *shardrouter.Router, rdb redis.UniversalClient, ours bool) error {
	var errs []error
	if router != nil {
		errs = append(errs, router.Close())
	}
	if ours {
		errs = append(errs, rdb.Close())
	}
	return errors.Join(errs...)
}

// reportRedis logs when Redis does not answer at the start. That is no error,
// but an operator with a typing mistake in the URL wants to know at once.
func reportRedis(ctx context.Context, rdb redis.UniversalClient, log *slog.Logger) {
	if log == nil {
		log = slog.Default()
	}
	if err := rdb.Ping(ctx).Err(); err != nil {
		log.WarnContext(ctx, "Redis does not answer yet: requests with a cookie get 503 until it does", "error", err)
	}
}
