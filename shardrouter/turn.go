package shardrouter

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// turn sets a key for a while, unless it is set already. One that stands for longer,
// or for good, is nobody's turn but the work of other hands, and would end
// all turns.
var turn = redis.NewScript(`
local left = redis.call('PTTL', KEYS[1])
if left >= 0 and left <= tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`)

// takeTurn reports whether it is now this instance's turn, of which key gives one
// instance of the fleet one every d.
func takeTurn(ctx context.Context, rdb redis.Scripter, key, instance string, d time.Duration) (bool, error) {
	took, err := turn.Run(ctx, rdb, []string{key}, instance, d.Milliseconds()).Int()
	return took == 1, err
}
