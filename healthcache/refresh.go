package healthcache

import (
	"context"
	"log/slog"
	"time"
)

// refreshing reads the keys each interval, and looks after the leases.
func (c *Cache) refreshing(ctx context.Context) {
	ticker := time.NewTicker(c.cfg.Interval)
	defer ticker.Stop()
	reachable := true
	for {
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
		}
	}
}

func (c *Cache) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.refreshTimeout())
	defer cancel()
	moves := c.board.moves()
	r, err := c.fleet.read(ctx, c.cfg.Shards)
	if err != nil {
		c.board.deaf()
		return err
	}
	if wanted := c.board.absorb(r, moves); len(wanted) > 0 {
		c.board.held(c.fleet.hold(ctx, wanted))
	}
	return nil
}

func (c *Cache) logRedis(err error) {
	if err != nil {
		c.cfg.Logger.Warn("health keys cannot be read, own probes serve", slog.Any("error", err))
		return
	}
	c.cfg.Logger.Info("health keys can be read again")
}
