package sessionstore

import (
	"cmp"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// The recommended timeouts. A player must be told within a second that Redis is
// gone, so one dial and one answer together stay below it. The client's own
// defaults (five dials of 5s each, answers of 5s, three retries) add up to half
// a minute.
const (
	clientDialTimeout   = 400 * time.Millisecond
	clientAnswerTimeout = 500 * time.Millisecond
	clientMaxBackoff    = 50 * time.Millisecond

	// A dial by way of sentinels asks one of them first. The client gives up on
	// a frozen sentinel only when two questions, each with its retry, have timed
	// out within one dial; a shorter dial stays with it for ever.
	sentinelDialTimeout = 3 * time.Second
)

// ClientOptions returns opts as this package wants them of its Redis client:
//
//	rdb := redis.NewUniversalClient(sessionstore.ClientOptions(redis.UniversalOptions{
//		Addrs: []string{"10.0.0.5:6379"},
//	}))
//
// Where opts leaves a timeout or a number of tries open, it gets a value with
// which a Redis that does not answer is noticed within a second: dials of 400ms
// (3s with sentinels), answers of 500ms, one retry (on a cluster, go-redis's
// own redirects), a back-off of at most 50ms, one dial at a time. What opts
// sets, stays.
//
// Three things are set whatever opts says. ContextTimeoutEnabled, without which
// go-redis ignores the deadline of a context while it waits for a silent
// server. DisableIdentity and no maintenance notifications, which servers
// before Redis 7.2 answer with errors. And no reads from replicas, which lag:
// a route or a logout read there may be over.
//
// The methods Simple, Cluster and Failover of the result give the options of
// one kind of client.
func ClientOptions(opts redis.UniversalOptions) *redis.UniversalOptions {
	sentinels := opts.MasterName != ""
	if sentinels {
		opts.DialTimeout = cmp.Or(opts.DialTimeout, sentinelDialTimeout)
	}
	opts.DialTimeout = cmp.Or(opts.DialTimeout, clientDialTimeout)
	opts.ReadTimeout = cmp.Or(opts.ReadTimeout, clientAnswerTimeout)
	opts.WriteTimeout = cmp.Or(opts.WriteTimeout, clientAnswerTimeout)
	opts.MaxRetryBackoff = cmp.Or(opts.MaxRetryBackoff, clientMaxBackoff)
	opts.DialerRetries = cmp.Or(opts.DialerRetries, 1)
	if cluster := opts.IsClusterMode || len(opts.Addrs) > 1; sentinels || !cluster {
		opts.MaxRetries = cmp.Or(opts.MaxRetries, 1)
	}
	opts.ContextTimeoutEnabled = true
	opts.DisableIdentity = true
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opts.ReadOnly, opts.RouteByLatency, opts.RouteRandomly = false, false, false
	return &opts
}
