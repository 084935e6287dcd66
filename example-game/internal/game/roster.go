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

const (
	// pendingFor is how long a registration counts as running. It is far longer
	// than a registration takes.
	pendingFor = 2 * time.Minute
	// markLife is how long a registration is remembered that did not end,
	// because the process died or because nobody knows whether the row was
	// written. Meanwhile the name is free only if every shard of its realm says
	// that it has no such row.
	markLife = 30 * 24 * time.Hour
)

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

// holding is what is noted for a name.
type holding struct {
	by      string // "" for nobody, a shard, or a mark
	running bool   // the mark is of a registration that may still end
}

// holder returns what is noted for a name.
func (r roster) holder(ctx context.Context, p player) (holding, error) {
	pipe := r.rdb.Pipeline()
	by, left := pipe.Get(ctx, r.key(p)), pipe.PTTL(ctx, r.key(p))
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return holding{}, fmt.Errorf("%w: %w", errRoster, err)
	}
	mark := strings.HasPrefix(by.Val(), pending)
	return holding{by.Val(), mark && left.Val() > markLife-pendingFor}, nil
}

// claim reserves a name for one registration, if what is noted is still
// before. It returns the mark; "" when somebody else was faster.
func (r roster) claim(ctx context.Context, p player, before string) (mark string, err error) {
	mark = pending + rand.Text()
	n, err := swap.Run(ctx, r.rdb, []string{r.key(p)}, before, mark, markLife.Milliseconds()).Int()
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
