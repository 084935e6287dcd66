package shardhop

import (
	"cmp"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/sessionstore"
)

// RedisMode says how the hosts of a Redis URL work together.
type RedisMode string

// The modes of Redis.
const (
	RedisStandalone RedisMode = "standalone" // one server
	RedisCluster    RedisMode = "cluster"    // the hosts are members of a cluster
	RedisSentinel   RedisMode = "sentinel"   // the hosts are sentinels
)

// dialRedis makes a client. It connects to nothing yet.
type dialRedis func() redis.UniversalClient

// parseRedis reads a URL and adds the recommended options, which those of the
// URL override.
func parseRedis(rawURL string, mode RedisMode, sentinelMaster string) (dialRedis, error) {
	if !isPlausible(rawURL, mode) {
		return nil, errRedisURL
	}
	switch mode {
	case "", RedisStandalone:
		return parseStandalone(rawURL)
	case RedisCluster:
		return parseCluster(rawURL)
	case RedisSentinel:
		return parseSentinel(rawURL, sentinelMaster)
	}
	return nil, fmt.Errorf("%w %q: want %s, %s or %s", errRedisMode, mode, RedisStandalone, RedisCluster, RedisSentinel)
}

func parseStandalone(rawURL string) (dialRedis, error) {
	opts, err := redis.ParseURL(rawURL)
	if err != nil {
		return nil, errRedisURL
	}
	rec := knobs{
		&opts.DialTimeout, &opts.ReadTimeout, &opts.WriteTimeout, &opts.MaxRetryBackoff, &opts.MaxRetries,
		&opts.DialerRetries, &opts.ContextTimeoutEnabled, &opts.DisableIdentity,
	}.recommend(redis.UniversalOptions{})
	opts.MaintNotificationsConfig = rec.MaintNotificationsConfig
	return func() redis.UniversalClient { return bounded(redis.NewClient(opts), opts.ReadTimeout) }, nil
}

func parseCluster(rawURL string) (dialRedis, error) {
	opts, err := redis.ParseClusterURL(rawURL)
	if err != nil {
		return nil, errRedisURL
	}
	if opts.ReadOnly || opts.RouteByLatency || opts.RouteRandomly {
		return nil, errRedisReplica
	}
	rec := knobs{
		&opts.DialTimeout, &opts.ReadTimeout, &opts.WriteTimeout, &opts.MaxRetryBackoff, &opts.MaxRetries,
		&opts.DialerRetries, &opts.ContextTimeoutEnabled, &opts.DisableIdentity,
	}.recommend(redis.UniversalOptions{IsClusterMode: true})
	opts.MaintNotificationsConfig = rec.MaintNotificationsConfig
	return func() redis.UniversalClient { return bounded(redis.NewClusterClient(opts), opts.ReadTimeout) }, nil
}

func parseSentinel(rawURL, master string) (dialRedis, error) {
	opts, err := redis.ParseFailoverURL(rawURL)
	if err != nil {
		return nil, errRedisURL
	}
	if opts.ReplicaOnly || opts.RouteByLatency || opts.RouteRandomly {
		return nil, errRedisReplica
	}
	if opts.MasterName = cmp.Or(master, opts.MasterName); opts.MasterName == "" {
		return nil, errRedisMaster
	}
	knobs{
		&opts.DialTimeout, &opts.ReadTimeout, &opts.WriteTimeout, &opts.MaxRetryBackoff, &opts.MaxRetries,
		&opts.DialerRetries, &opts.ContextTimeoutEnabled, &opts.DisableIdentity,
	}.recommend(redis.UniversalOptions{MasterName: opts.MasterName})
	return func() redis.UniversalClient { return bounded(redis.NewFailoverClient(opts), opts.ReadTimeout) }, nil
}

// knobs are the options that the three kinds of client have in common.
type knobs struct {
	dial, read, write, backoff *time.Duration
	retries, dials             *int
	deadlines, anonymous       *bool
}

// recommend fills in what the URL left open. kind tells the kind of client.
func (k knobs) recommend(kind redis.UniversalOptions) *redis.UniversalOptions {
	kind.DialTimeout, kind.ReadTimeout, kind.WriteTimeout = *k.dial, *k.read, *k.write
	kind.MaxRetryBackoff, kind.MaxRetries, kind.DialerRetries = *k.backoff, *k.retries, *k.dials
	rec := sessionstore.ClientOptions(kind)
	*k.dial, *k.read, *k.write = rec.DialTimeout, rec.ReadTimeout, rec.WriteTimeout
	*k.backoff, *k.retries, *k.dials = rec.MaxRetryBackoff, rec.MaxRetries, rec.DialerRetries
	*k.deadlines, *k.anonymous = rec.ContextTimeoutEnabled, rec.DisableIdentity
	return rec
}

// redisDialAllowance is the part of a command's total time that is not the wait
// for its answer.
const redisDialAllowance = 400 * time.Millisecond

// bounded gives every command of client a total time, the wait for a pooled
// connection, the dial and all retries included. The client's own timeouts each
// bound one step only, and a cluster's retries multiply them.
func bounded(client redis.UniversalClient, read time.Duration) redis.UniversalClient {
	if read > 0 { // negative: the URL switches timeouts off
		client.AddHook(deadline(redisDialAllowance + read))
	}
	return client
}
