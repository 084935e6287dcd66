package shardhop

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/sessionstore"
	"github.com/shardhop/shardhop/shardrouter"
)

// Config configures [Open]. Redis or RedisURL, and Router.Shards, are required;
// the zero value of everything else is a documented default.
type Config struct {
	// Redis is a client of the caller's own, which Close leaves open. Its
	// timeouts decide how soon a player hears that Redis is gone. Nil: one is
	// made from RedisURL, with timeouts under a second.
	Redis redis.UniversalClient
	// RedisURL is a redis://, rediss:// or unix:// URL in the form that go-redis
	// documents; its parameters (read_timeout, pool_size, …) win over what is
	// recommended. Further hosts of a cluster, and further sentinels, stand in
	// addr parameters: redis://a:6379?addr=b:6379&addr=c:6379. With sentinels
	// the URL's account is theirs, and the server's own stands in the
	// parameters username and password.
	RedisURL string
	// RedisMode says how the URL's hosts work together. Default RedisStandalone.
	RedisMode RedisMode
	// RedisSentinelMaster is the name by which the sentinels know the master.
	// Required with RedisSentinel.
	RedisSentinelMaster string

	// SessionLifetime is the absolute lifetime of a session. Default 24h.
	SessionLifetime time.Duration
	// SessionIdleTimeout ends a session that is not used for so long. It must be
	// longer than Router.HoldTimeout, or a wait could cost the login. Default 0:
	// off.
	SessionIdleTimeout time.Duration
	// CookieSecure keeps the cookie off plain HTTP. Set it behind TLS.
	CookieSecure bool
	// Sessions configures the store. The cookie and the like are set on
	// Hop.Sessions before it serves.
	Sessions sessionstore.Config

	// Router configures the shards. Its Redis, where health is shared, is the
	// sessions' unless set.
	Router shardrouter.Config

	// Middleware configures what requests see. Open fills in its Sessions and
	// its Router.
	Middleware middleware.Config
}

// defaultHoldTimeout is shardrouter's.
const defaultHoldTimeout = 60 * time.Second

// problems lists what is wrong with cfg itself; the packages check their own
// parts.
func (cfg Config) problems() []error {
	var found []error
	add := func(format string, args ...any) { found = append(found, fmt.Errorf(format, args...)) }

	if cfg.Redis != nil && cfg.RedisURL != "" {
		add("both Redis and RedisURL are set: leave one of them out")
	}
	if cfg.RedisSentinelMaster != "" && cfg.RedisMode != RedisSentinel {
		add("the name of a sentinel master is set, but the Redis mode is not %s", RedisSentinel)
	}
	if cfg.SessionLifetime < 0 {
		add("session lifetime %v is negative", cfg.SessionLifetime)
	}
	if cfg.SessionIdleTimeout < 0 {
		add("session idle timeout %v is negative: 0 turns it off", cfg.SessionIdleTimeout)
	}
	hold := cfg.Router.HoldTimeout
	if hold == 0 {
		hold = defaultHoldTimeout
	}
	if idle := cfg.SessionIdleTimeout; idle > 0 && idle <= hold {
		add("session idle timeout %v is not longer than the hold timeout %v: a player who waits for a shard would be logged out", idle, hold)
	}
	if cfg.Middleware.Sessions != nil || cfg.Middleware.Router != nil {
		add("Middleware.Sessions and Middleware.Router are filled in by Open: leave them out, or call middleware.New yourself")
	}
	return found
}

// redisClient returns the client to use, and whether it is ours to close.
func (cfg Config) redisClient() (client redis.UniversalClient, ours bool, err error) {
	if cfg.Redis != nil {
		return cfg.Redis, false, nil
	}
	if cfg.RedisURL == "" {
		return nil, false, errors.New("no Redis: set REDIS_URL (Config.Redis or Config.RedisURL)")
	}
	client, err = newRedis(cfg.RedisURL, cfg.RedisMode, cfg.RedisSentinelMaster)
	if err != nil {
		return nil, false, fmt.Errorf("REDIS_URL (Config.RedisURL): %w", err)
	}
	return client, true, nil
}
