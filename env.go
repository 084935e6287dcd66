package shardhop

import (
	"context"
	"errors"
	"time"

	"github.com/shardhop/shardhop/internal/envread"
	"github.com/shardhop/shardhop/shardrouter"
)

// FromEnv is [Open] with the configuration of [ConfigFromEnv].
func FromEnv(ctx context.Context) (*Hop, error) {
	cfg, err := ConfigFromEnv()
	if err != nil {
		return nil, err
	}
	return Open(ctx, cfg)
}

// ConfigFromEnv reads the configuration from the environment of the process,
// and over it from the file that SHARDS_FILE names; see [ConfigFrom] and
// [shardrouter.WithFile].
func ConfigFromEnv() (Config, error) {
	vars, err := shardrouter.WithFile(envread.Environ())
	return envread.Parse(vars, err, ConfigFrom)
}

// ConfigFrom reads the configuration from variables: what
// [shardrouter.ConfigFrom] reads, and
//
//	REDIS_URL              redis://…, rediss://… or unix://…; required
//	REDIS_MODE             standalone (default), cluster or sentinel
//	REDIS_SENTINEL_MASTER  the master's name, with sentinel
//	SESSION_LIFETIME       default 24h
//	SESSION_IDLE_TIMEOUT   off (default), or longer than SHARD_HOLD_TIMEOUT
//	COOKIE_SECURE          0 (default), or 1 behind TLS
//
// The configuration that it returns is valid. The error names every variable
// that is wrong, with the expected form, in one line and without any password.
func ConfigFrom(vars map[string]string) (Config, error) {
	r := envread.New(vars)
	router, err := shardrouter.ConfigFrom(vars)
	r.Add(err)
	cfg := Config{
		RedisURL:            r.Required("REDIS_URL", redisURLForm),
		RedisMode:           envread.OneOf(r, "REDIS_MODE", RedisStandalone, RedisStandalone, RedisCluster, RedisSentinel),
		RedisSentinelMaster: r.String("REDIS_SENTINEL_MASTER", ""),
		SessionLifetime:     r.Duration("SESSION_LIFETIME", 24*time.Hour),
		SessionIdleTimeout:  r.DurationOrOff("SESSION_IDLE_TIMEOUT", 0),
		CookieSecure:        r.Bool("COOKIE_SECURE", false),
		Router:              router,
	}
	if cfg.RedisURL != "" {
		if _, err := parseRedis(cfg.RedisURL, cfg.RedisMode, cfg.RedisSentinelMaster); err != nil {
			r.Problemf("REDIS_URL", "%v", err)
		}
	}
	r.Add(errors.Join(cfg.problems()...))
	if err := r.Err(); err != nil {
		return Config{}, err
	}
	return cfg, nil
}
