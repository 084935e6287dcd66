package embedded

import (
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// tick is how often the clock of the embedded Redis moves.
const tick = 200 * time.Millisecond

// Redis is a Redis server in memory, on a free loopback port. Its methods are
// safe for use by several goroutines.
type Redis struct {
	server *miniredis.Miniredis
	stop   chan struct{}
	once   sync.Once
	clock  sync.WaitGroup
}

// NewRedis starts the server.
func NewRedis() (*Redis, error) {
	s := miniredis.NewMiniRedis()
	if err := s.Start(); err != nil {
		return nil, fmt.Errorf("embedded: start Redis: %w", err)
	}
	r := &Redis{server: s, stop: make(chan struct{})}
	r.clock.Go(r.runClock)
	return r, nil
}

// runClock lets keys expire: miniredis is made for tests, and its keys grow
// old only when told to.
func (r *Redis) runClock() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-r.stop:
			return
		case now := <-ticker.C:
			r.server.FastForward(now.Sub(last))
			last = now
		}
	}
}

// URL is the address for REDIS_URL.
func (r *Redis) URL() string { return "redis://" + r.server.Addr() }

// Close stops the server and waits for it. It is idempotent.
func (r *Redis) Close() error {
	r.once.Do(func() {
		close(r.stop)
		r.clock.Wait()
		r.server.Close()
	})
	return nil
}
