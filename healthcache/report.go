package healthcache

import "context"

// reporting writes results and testimonies as they come. It has its own
// goroutine, so that no prober waits for Redis; what comes meanwhile is written
// together.
func (c *Cache) reporting(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.board.reports:
			c.report(ctx)
		}
	}
}

func (c *Cache) report(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.refreshTimeout())
	defer cancel()
	for shard, word := range c.board.testimonies() {
		// A word that is not heard abstains.
		_ = c.fleet.testify(ctx, shard, word)
	}
	if out := c.board.outgoing(); len(out) > 0 {
		c.board.written(out, c.fleet.report(ctx, out))
		c.tell(ctx)
	}
}

// release hands the leases back and takes this instance off the list of the
// living, so that another one need not wait for their end.
func (c *Cache) release() {
	ctx, cancel := context.WithTimeout(context.Background(), c.cfg.refreshTimeout())
	defer cancel()
	if mine := c.board.leases(); len(mine) > 0 {
		if err := c.fleet.release(ctx, mine); err != nil {
			return
		}
	}
	_ = c.fleet.leave(ctx)
}
