package healthcache

import (
	"context"
	"sync"
	"time"
)

// probeContext bounds one probe. It differs from a context with a deadline in
// that its time can be shortened while it runs; like one it ends with
// context.DeadlineExceeded when the time is over, and with context.Canceled
// when the cache closes, so that a probe can tell a silent server from a
// question that was withdrawn. It is safe for use by several goroutines.
type probeContext struct {
	context.Context // the cache's
	latest          time.Time
	done            chan struct{}

	mu  sync.Mutex // taken by the timer, the prober and whoever asks for Err
	err error
}

func newProbeContext(parent context.Context, latest time.Time) *probeContext {
	return &probeContext{Context: parent, latest: latest, done: make(chan struct{})}
}

// Deadline is the latest end; a suspicion can bring it forward.
func (c *probeContext) Deadline() (time.Time, bool) { return c.latest, true }

func (c *probeContext) Done() <-chan struct{} { return c.done }

func (c *probeContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// end ends the context, if it has not ended before.
func (c *probeContext) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.done)
	}
}
