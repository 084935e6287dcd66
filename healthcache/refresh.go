package healthcache

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// refreshing beats once an interval, and sooner when there is a hint; between two
// beats it peeks whether another is worth while.
func (c *Cache) refreshing(ctx context.Context) {
	ticker := time.NewTicker(c.cfg.turn())
	defer ticker.Stop()
	reachable, due := true, true
	var beaten time.Time
	for {
		began := time.Now()
		beat, err := c.exchange(ctx, due)
		if ctx.Err() != nil {
			return
		}
		if beat {
			beaten = began
		}
		if reachable != (err == nil) {
			reachable = err == nil
			c.logRedis(err)
		}
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			// Ticks come twice an interval, give or take.
			due = !reachable || now.Sub(beaten) > c.cfg.Interval*3/4
		case <-c.board.hints:
			due = true
			// Many hints are one.
			pause(ctx, time.Until(began.Add(c.cfg.pace())))
		}
	}
}

// exchange is a beat where that is due, or where a peek tells that it would bring
// something, or cannot tell.
func (c *Cache) exchange(ctx context.Context, due bool) (beat bool, err error) {
	if !due {
		news, err := c.peek(ctx)
		if err != nil && !answered(err) {
			c.board.deaf()
			return false, err
		}
		if err == nil && !news {
			return false, nil
		}
	}
	return true, c.refresh(ctx)
}

func (c *Cache) peek(ctx context.Context) (news bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.refreshTimeout())
	defer cancel()
	return c.fleet.peek(ctx, c.board.watching())
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
	p, err := c.fleet.beat(ctx, c.board.holding())
	if answered(err) {
		if isFull(err) {
			c.readLedger(ctx)
		}
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
	c.sweep(ctx, &todo)
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

// sweep takes off the agenda what is as it was.
func (c *Cache) sweep(ctx context.Context, todo *agenda) {
	if len(todo.swept) == 0 {
		return
	}
	same := c.fleet.sweep(ctx, todo.swept)
	c.board.confirmed(same)
	todo.read = slices.DeleteFunc(todo.read, func(shard string) bool {
		return slices.ContainsFunc(same, func(p footprint) bool { return p.shard == shard })
	})
}

// answered reports whether Redis itself gave the error.
func answered(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

// isFull reports whether Redis takes no writes because its memory is full. What such
// a server says of the record of a writer counts, since nobody can move it. The word
// of a replica may be an old one, and that of a master that lacks replicas: Redis
// complains of both before it complains of its memory, but not before its disk.
func isFull(err error) bool { return redis.HasErrorPrefix(err, "OOM") }

// readLedger reads the keys that a beat would have looked at. What cannot be read
// is left to the beats to come.
func (c *Cache) readLedger(ctx context.Context) {
	keys, began := *c.ledger.keys.Load(), time.Now()
	if len(keys) == 0 {
		return
	}
	cells, _, _ := c.fleet.readCells(ctx, keys) // each tells whether it was read
	c.ledger.absorbCells(keys, cells, began)
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
		keys.drain.doubtAbsence()
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
