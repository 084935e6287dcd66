package shardhop

import "github.com/redis/go-redis/v9"

// NewRedis makes the client that Open makes of a URL.
func NewRedis(url string, mode RedisMode, sentinelMaster string) (redis.UniversalClient, error) {
	dial, err := parseRedis(url, mode, sentinelMaster)
	if err != nil {
		return nil, err
	}
	return dial(), nil
}
