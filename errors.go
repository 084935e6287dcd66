package shardhop

import "errors"

// errRedisURL stands in for every error of go-redis about a URL: those quote the
// URL, and one that is cut at the wrong place shows part of its password.
var errRedisURL = errors.New("malformed, or with an unknown option (not shown, since it may hold a password): want " + redisURLForm)

var (
	errRedisMode    = errors.New("unknown Redis mode")
	errRedisMaster  = errors.New("the name of the sentinels' master is missing: set REDIS_SENTINEL_MASTER (Config.RedisSentinelMaster)")
	errRedisReplica = errors.New("sessions and routes must be read from the master: " +
		"remove read_only, replica_only, route_by_latency and route_randomly")
)
