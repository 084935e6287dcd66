package healthcache

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
)

// refreshing beats twice an interval, and sooner when there is a hint.
func (c *Cache) refreshing(ctx context.Context) {
	ticker := time.NewTicker(c.cfg.beat())
	defer ticker.Stop()
	reachable := true
	for {
		began := time.Now()
		err := c.refresh(ctx)
		if ctx.Err() != nil {
			return
		}
		if reachable != (err == nil) {
			reachable = err == nil
			c.logRedis(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-c.board.hints:
			// Many hints are one.
			pause(ctx, time.Until(began.Add(c.cfg.pace())))
		}
	}
}

// pause waits for d or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// refresh is one exchange with Redis: a beat, and whatever it gives to do.
func (c *Cache) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.refreshTimeout())
	defer cancel()
	moves := c.board.moves()
	seen, held := c.board.holding()
	p, err := c.fleet.beat(ctx, seen, held)
	if answered(err) {
		return c.readOnly(ctx, moves)
	}
	if err != nil {
		c.board.deaf()
		return err
	}
	todo := c.board.hear(p, moves)
	for _, shard := range todo.asked {
		_ = c.fleet.testify(ctx, shard, wordUnknown)
	}
	if len(todo.lost) > 0 {
		return c.restore(ctx, p, todo.lost)
	}
	if len(todo.offered) > 0 {
		c.board.tookOver(c.fleet.takeOver(ctx, todo.offered))
	}
	if todo.sweep != "" && todo.sweep == c.fleet.sweep(ctx, todo.swept) {
		c.board.confirmed()
		todo.read = nil
	}
	if len(todo.read)+len(todo.foreign) > 0 {
		if err := c.read(ctx, todo, p.now, moves); err != nil {
			return err
		}
	}
	if todo.burdened {
		c.spread(ctx)
	}
	c.tell(ctx)
	return nil
}

// answered reports whether Redis itself gave the error.
func answered(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

// read reads keys, and takes the leases that are free.
func (c *Cache) read(ctx context.Context, todo agenda, clock time.Time, moves map[string]int) error {
	r, err := c.fleet.read(ctx, todo.read, todo.foreign, clock)
	if err != nil {
		c.board.unread()
		c.board.deaf()
		return err
	}
	if wanted := c.board.absorb(r, moves); len(wanted) > 0 {
		c.board.held(c.fleet.take(ctx, wanted))
	}
	return nil
}

// readOnly is the exchange with a Redis that answers but takes no writes, a
// replica before its promotion for one: everything is read, and believed but
// for drains that are missing.
func (c *Cache) readOnly(ctx context.Context, moves map[string]int) error {
	r, err := c.fleet.read(ctx, c.board.watched(), nil, time.Time{})
	c.board.unread()
	if err != nil {
		c.board.deaf()
		return err
	}
	for shard, keys := range r.shards {
		keys.drain.failed = keys.drain.failed || !keys.drain.exists
		keys.lease.failed = true
		r.shards[shard] = keys
	}
	c.board.absorb(r, moves)
	return nil
}

// restore writes drains again after Redis lost everything.
func (c *Cache) restore(ctx context.Context, p pulse, drains []lost) error {
	back, err := c.fleet.restore(ctx, p.generation, drains)
	for _, shard := range back {
		c.cfg.Logger.Warn("redis lost a drain, it is written again", slog.String("shard", shard))
	}
	if err != nil {
		return err
	}
	c.board.restored(p, back)
	signal(c.board.hints) // for what was not read
	return nil
}

// tell tells the fleet of the keys that this instance changed.
func (c *Cache) tell(ctx context.Context) {
	news := c.board.takeNews()
	if len(news) == 0 {
		return
	}
	if err := c.fleet.bump(ctx, news); err != nil {
		c.board.keepNews(news)
	}
}

func (c *Cache) logRedis(err error) {
	if err != nil {
		c.cfg.Logger.Warn("health keys cannot be read, own probes serve", slog.Any("error", err))
		return
	}
	c.cfg.Logger.Info("health keys can be read again")
}
