package healthcache

import "context"

// reporting writes results as they come. It has its own goroutine, so that no
// prober waits for Redis; results that come meanwhile are written together.
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
	out := c.board.outgoing()
	if len(out) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.refreshTimeout())
	defer cancel()
	c.board.written(out, c.fleet.report(ctx, out))
}

// release hands the leases back, so that another instance need not wait for
// their end.
func (c *Cache) release() {
	mine := c.board.leases()
	if len(mine) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.cfg.refreshTimeout())
	defer cancel()
	c.fleet.release(ctx, mine)
}
