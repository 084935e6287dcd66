package healthcache

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// ReadEnd is what a drain key that was just read comes to when PTTL answers so.
func ReadEnd(ttl time.Duration) (left time.Duration, failed bool) {
	c := cell{value: "upgrade", exists: true}
	cmd := redis.NewDurationCmd(context.Background(), time.Millisecond, "pttl", "db:drain:a")
	cmd.SetVal(ttl)
	c.ends(cmd)
	return c.left, c.failed
}
