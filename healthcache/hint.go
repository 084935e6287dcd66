package healthcache

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// hintSilence is after how many silent intervals a subscription is asked
// whether it still stands.
const hintSilence = 5

// listening hears the hints of the others. It can be missing altogether: then
// everything is found out at the next beat.
func (c *Cache) listening(ctx context.Context) {
	for ctx.Err() == nil {
		c.fleet.listen(ctx, hintSilence*c.cfg.Interval, c.board.overhear)
		pause(ctx, hintSilence*c.cfg.Interval)
	}
}

// listen passes hints on until the subscription breaks or ctx is done.
func (f *fleet) listen(ctx context.Context, silence time.Duration, hear func(text string)) {
	sub := f.client.Subscribe(ctx)
	// A read that waits minds no context: closing ends it.
	unlink := context.AfterFunc(ctx, func() { _ = sub.Close() })
	defer func() {
		unlink()
		_ = sub.Close()
	}()
	if sub.Subscribe(ctx, hintChannel) != nil {
		return
	}
	pinged := false
	for {
		message, err := sub.ReceiveTimeout(ctx, silence)
		switch {
		case err == nil:
			pinged = false
			if m, ok := message.(*redis.Message); ok {
				hear(m.Payload)
			}
		case isTimeout(err) && !pinged && sub.Ping(ctx) == nil:
			pinged = true
		default:
			return
		}
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
