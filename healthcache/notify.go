package healthcache

import (
	"context"
	"log/slog"
	"sync"
)

// notice is a change of state on its way to the log and to OnChange.
type notice struct {
	Change
	src source
}

// notices is a queue: whoever holds the board's lock puts in, one goroutine
// takes out, so that the order is that of the changes and no hook runs under a
// lock.
type notices struct {
	news chan struct{} // holds one

	mu    sync.Mutex // taken under the board's
	queue []notice
}

func newNotices() *notices { return &notices{news: make(chan struct{}, 1)} }

func (n *notices) push(c notice) {
	n.mu.Lock()
	n.queue = append(n.queue, c)
	n.mu.Unlock()
	select {
	case n.news <- struct{}{}:
	default:
	}
}

func (n *notices) take() []notice {
	n.mu.Lock()
	defer n.mu.Unlock()
	taken := n.queue
	n.queue = nil
	return taken
}

// run passes every notice to tell until stop is closed and the queue is empty.
func (n *notices) run(stop <-chan struct{}, tell func(notice)) {
	for {
		for _, c := range n.take() {
			tell(c)
		}
		select {
		case <-n.news:
		case <-stop:
			for _, c := range n.take() {
				tell(c)
			}
			return
		}
	}
}

// pass logs a change and calls the hook.
func (c *Cache) pass(n notice) {
	level := slog.LevelInfo
	if n.Next.State == Down || n.Next.State == ReadOnly || n.Next.State == Misconfigured {
		level = slog.LevelWarn
	}
	c.cfg.Logger.LogAttrs(context.Background(), level, "shard changed state",
		slog.String("shard", n.Shard),
		slog.String("from", n.Prev.State.String()),
		slog.String("to", n.Next.State.String()),
		slog.String("reason", n.Next.Reason),
		slog.String("evidence", string(n.src)),
		slog.String("by", n.Next.By),
	)
	if c.cfg.OnChange != nil {
		c.cfg.OnChange(n.Change)
	}
}
