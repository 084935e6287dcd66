package healthcache

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// notice is a change of state on its way to the log and to OnChange.
type notice struct {
	Change
	src   source
	quota *quota // of the shard's log lines
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

func (n *notices) push(told ...notice) {
	if len(told) == 0 {
		return
	}
	n.mu.Lock()
	n.queue = append(n.queue, told...)
	n.mu.Unlock()
	signal(n.news)
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

// How many changes of one shard are logged at once, and after how long another
// one is.
const (
	logBurst = 10
	logEvery = 10 * time.Second
)

// quota bounds the lines that one shard may write. The zero value is full. The
// goroutine that passes changes on uses it alone.
type quota struct {
	used     float64 // lines, as far as they count still
	at       time.Time
	withheld int
}

// take reports whether a line may be written now, and how many were withheld
// since the last one.
func (q *quota) take(now time.Time) (withheld int, ok bool) {
	q.used = max(q.used-float64(now.Sub(q.at))/float64(logEvery), 0)
	q.at = now
	if q.used > logBurst-1 {
		q.withheld++
		return 0, false
	}
	q.used++
	withheld, q.withheld = q.withheld, 0
	return withheld, true
}

// pass logs a change of state, unless the shard has had too many, and calls the
// hook.
func (c *Cache) pass(n notice) {
	if n.Prev.State == n.Next.State {
		c.cfg.Logger.Info("drain of a shard that is not up began or ended", slog.String("shard", n.Shard), slog.String("state", n.Next.State.String()))
	} else if withheld, ok := n.quota.take(time.Now()); ok {
		c.log(n, withheld)
	}
	if c.cfg.OnChange != nil {
		c.cfg.OnChange(n.Change)
	}
}

func (c *Cache) log(n notice, withheld int) {
	level := slog.LevelInfo
	if n.Next.State == Down || n.Next.State == ReadOnly || n.Next.State == Misconfigured {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{
		slog.String("shard", n.Shard),
		slog.String("from", n.Prev.State.String()),
		slog.String("to", n.Next.State.String()),
		slog.String("reason", n.Next.Reason),
		slog.String("evidence", string(n.src)),
		slog.String("by", n.Next.By),
	}
	if withheld > 0 {
		attrs = append(attrs, slog.Int("lines_withheld", withheld))
	}
	c.cfg.Logger.LogAttrs(context.Background(), level, "shard changed state", attrs...)
}
