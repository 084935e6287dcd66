package shardhop

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	// timeouts decide how soon a player hears that Redis is gone;
	// sessionstore.ClientOptions has those to use. Nil: one is made from
	// RedisURL, with timeouts under a second.
	Redis redis.UniversalClient
	// RedisURL is a redis://, rediss:// or unix:// URL in the form that go-redis
	// documents; its parameters (read_timeout, pool_size, …) win over what is
	// recommended. Further hosts of a cluster, and further sentinels, stand in
	// addr parameters: redis://a:6379?addr=b:6379&addr=c:6379. With sentinels
	// the URL's account is theirs, and the server's own stands in the
	// parameters username and password. With rediss://, every server's
	// certificate has to name the URL's first host; the environment variable
	// SSL_CERT_FILE names a file of authorities other than the system's.
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

// defaultHoldTimeout is the router's.
const defaultHoldTimeout = 60 * time.Second

// problems lists what is wrong with cfg, but for what shardrouter.New checks.
// Middleware.Group needs the router and is checked by unknownGroup.
func (cfg Config) problems() []error {
	var found []error
	add := func(format string, args ...any) { found = append(found, fmt.Errorf(format, args...)) }

	if cfg.Redis != nil && cfg.RedisURL != "" {
		add("both Redis and RedisURL are set: leave one of them out")
	}
	if cfg.RedisSentinelMaster != "" && cfg.RedisMode != RedisSentinel {
		add("RedisSentinelMaster (REDIS_SENTINEL_MASTER) is set, but RedisMode (REDIS_MODE) is not %s", RedisSentinel)
	}
	if cfg.Middleware.Sessions != nil || cfg.Middleware.Router != nil {
		add("Middleware.Sessions and Middleware.Router are filled in by Open: leave them out, or call middleware.New yourself")
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"SessionLifetime", cfg.SessionLifetime}, {"SessionIdleTimeout", cfg.SessionIdleTimeout},
		{"Sessions.Timeout", cfg.Sessions.Timeout}, {"Sessions.RetryAfter", cfg.Sessions.RetryAfter},
		{"Middleware.ClaimTimeout", cfg.Middleware.ClaimTimeout}, {"Middleware.RetryAfter", cfg.Middleware.RetryAfter},
	} {
		if d.value < 0 {
			add("%s %v is negative: leave it 0 for the default", d.field, d.value)
		}
	}
	for field, n := range map[string]int{
		"MaxRuns": cfg.Middleware.MaxRuns, "ReplayBuffer": cfg.Middleware.ReplayBuffer,
	} {
		if n < 0 {
			add("Middleware.%s %d is negative: leave it 0 for the default", field, n)
		}
	}
	hold := cmp.Or(cfg.Router.HoldTimeout, defaultHoldTimeout)
	if idle := cfg.SessionIdleTimeout; idle > 0 && idle <= hold {
		add("SessionIdleTimeout (SESSION_IDLE_TIMEOUT) %v is not longer than Router.HoldTimeout (SHARD_HOLD_TIMEOUT) %v: a player who waits for a shard would be logged out", idle, hold)
	}
	return found
}

// unknownGroup checks the group that new sessions are assigned to against the
// router's. A nil router has been reported already.
func (cfg Config) unknownGroup(router *shardrouter.Router) error {
	group := cfg.Middleware.Group
	if router == nil || group == "" || slices.Contains(router.Groups(), group) {
		return nil
	}
	return fmt.Errorf("Middleware.Group %q is no group of any shard: want one of %s", group, strings.Join(router.Groups(), ", "))
}

// redisClient returns the client to use, and whether it is ours to close.
func (cfg Config) redisClient() (client redis.UniversalClient, ours bool, err error) {
	if cfg.Redis != nil {
		return cfg.Redis, false, nil
	}
	if cfg.RedisURL == "" {
		return nil, false, errors.New("no Redis: set Redis or RedisURL")
	}
	dial, err := parseRedis(cfg.RedisURL, cfg.RedisMode, cfg.RedisSentinelMaster)
	if err != nil {
		return nil, false, fmt.Errorf("RedisURL: %w", err)
	}
	return dial(), true, nil
}
