package shardhop

import (
	"cmp"
	"fmt"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// RedisMode says how the hosts of a Redis URL work together.
type RedisMode string

// The modes of Redis.
const (
	RedisStandalone RedisMode = "standalone" // one server
	RedisCluster    RedisMode = "cluster"    // the hosts are members of a cluster
	RedisSentinel   RedisMode = "sentinel"   // the hosts are sentinels
)

// The recommended timeouts. A player must be told within a second that Redis is
// gone, so one dial and one answer together stay below it. The client's own
// defaults (five dials of 5s each, answers of 5s, three retries) add up to half
// a minute.
const (
	redisDialTimeout   = 400 * time.Millisecond
	redisAnswerTimeout = 500 * time.Millisecond
	redisMaxBackoff    = 50 * time.Millisecond

	// A dial by way of sentinels asks one of them first. The client gives up on
	// a frozen sentinel only when two questions, each with its retry, have timed
	// out within one dial; a shorter dial stays with it for ever.
	sentinelDialTimeout = 3 * time.Second
)

// redisURLForm is what a URL has to look like, in words for an error.
const redisURLForm = "redis://[user:password@]host:port[/db], rediss://… or unix:///path (standalone only), " +
	"further hosts as ?addr=host:port&addr=host:port"

// dialRedis makes a client. It connects to nothing yet.
type dialRedis func() redis.UniversalClient

// parseRedis reads a URL and adds the recommended options, which those of the
// URL override.
func parseRedis(rawURL string, mode RedisMode, sentinelMaster string) (dialRedis, error) {
	if !namesHost(rawURL) {
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
	recommend(&opts.DialTimeout, &opts.ReadTimeout, &opts.WriteTimeout, &opts.MaxRetryBackoff)
	opts.MaxRetries = cmp.Or(opts.MaxRetries, 1)
	opts.DialerRetries = 1
	opts.ContextTimeoutEnabled = true
	opts.DisableIdentity = true
	opts.MaintNotificationsConfig = noMaintenanceNotes()
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
	recommend(&opts.DialTimeout, &opts.ReadTimeout, &opts.WriteTimeout, &opts.MaxRetryBackoff)
	opts.DialerRetries = cmp.Or(opts.DialerRetries, 1)
	opts.ContextTimeoutEnabled = true
	opts.DisableIdentity = true
	opts.MaintNotificationsConfig = noMaintenanceNotes()
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
	opts.DialTimeout = cmp.Or(opts.DialTimeout, sentinelDialTimeout)
	recommend(&opts.DialTimeout, &opts.ReadTimeout, &opts.WriteTimeout, &opts.MaxRetryBackoff)
	opts.MaxRetries = cmp.Or(opts.MaxRetries, 1)
	opts.DialerRetries = cmp.Or(opts.DialerRetries, 1)
	opts.ContextTimeoutEnabled = true
	opts.DisableIdentity = true
	return func() redis.UniversalClient { return bounded(redis.NewFailoverClient(opts), opts.ReadTimeout) }, nil
}

// namesHost reports whether a URL says where the server is. go-redis takes one
// without a host for localhost, which hides a variable that was cut short.
func namesHost(rawURL string) bool {
	u, err := url.Parse(rawURL)
	return err == nil && (u.Hostname() != "" || u.Scheme == "unix")
}

// recommend fills in what the URL left open.
func recommend(dial, read, write, backoff *time.Duration) {
	*dial = cmp.Or(*dial, redisDialTimeout)
	*read = cmp.Or(*read, redisAnswerTimeout)
	*write = cmp.Or(*write, redisAnswerTimeout)
	*backoff = cmp.Or(*backoff, redisMaxBackoff)
}

// noMaintenanceNotes keeps the client from asking for maintenance
// notifications, which older servers answer with an error.
func noMaintenanceNotes() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// bounded gives every command of client a total time, the wait for a pooled
// connection, the dial and all retries included. The client's own timeouts each
// bound one step only, and a cluster's retries multiply them.
func bounded(client redis.UniversalClient, read time.Duration) redis.UniversalClient {
	if read > 0 { // negative: the URL switches timeouts off
		client.AddHook(deadline(redisDialTimeout + read))
	}
	return client
}
