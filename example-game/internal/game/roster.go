package game

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// pendingFor is how long a name is kept for a registration that does not end,
// because the process died or because nobody knows whether the row was
// written. It is far longer than a registration takes.
const pendingFor = 2 * time.Minute

// errRoster: Redis could not say whether a name is free.
var errRoster = errors.New("game: roster unavailable")

// roster remembers in Redis which names are taken: game:name:<realm>/<name>
// holds the shard on which the player registered, or a mark while the
// registration runs. The rows are the truth. The roster is what is known of
// those that cannot be read now, so that a name is not given twice while a
// shard is down that has it.
type roster struct{ rdb redis.UniversalClient }

// pending tells the mark of a registration from the name of a shard.
const pending = "?"

// swap sets a key from one value to another, if it has that value; "" stands
// for no key. It succeeds as well when the new value is there already, since
// go-redis may run it twice.
var swap = redis.NewScript(`
local now = redis.call('GET', KEYS[1]) or ''
if now ~= ARGV[1] and now ~= ARGV[2] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1])
else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1`)

func (r roster) key(p player) string { return "game:name:" + p.String() }

// holder returns what is noted for a name: "" for nothing, a shard, or a mark.
func (r roster) holder(ctx context.Context, p player) (string, error) {
	v, err := r.rdb.Get(ctx, r.key(p)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("%w: %w", errRoster, err)
	}
	return v, nil
}

// claim reserves a name for one registration, if what is noted is still
// before. It returns the mark; "" when somebody else was faster.
func (r roster) claim(ctx context.Context, p player, before string) (mark string, err error) {
	mark = pending + rand.Text()
	n, err := swap.Run(ctx, r.rdb, []string{r.key(p)}, before, mark, pendingFor.Milliseconds()).Int()
	if err != nil {
		return "", fmt.Errorf("%w: %w", errRoster, err)
	}
	if n == 0 {
		return "", nil
	}
	return mark, nil
}

// keep notes for good on which shard a player is. It does not matter if that
// fails: the rows are the truth.
func (r roster) keep(ctx context.Context, p player, shard string) {
	_ = r.rdb.Set(ctx, r.key(p), shard, 0).Err()
}

// drop gives a name back after a registration that wrote nothing. If that
// fails, the mark expires.
func (r roster) drop(ctx context.Context, p player, mark string) {
	_ = swap.Run(ctx, r.rdb, []string{r.key(p)}, mark, "", 1).Err()
}

func isPending(holder string) bool { return strings.HasPrefix(holder, pending) }
