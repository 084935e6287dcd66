package shardrouter

import (
	"sync"
	"time"
)

// uses counts what is under way on one connection: running statements, open
// rows, open transactions. sql.Conn.Close blocks for as long as there are any,
// so a lease looks here first. Safe for use by several goroutines.
type uses struct {
	mu    sync.Mutex
	n     int
	since time.Time     // when n left 0
	asked time.Time     // when the statement that runs was sent; zero: none runs
	told  bool          // of the statement that runs; see overdue
	idle  chan struct{} // closed when n reaches 0; nil when nobody waits
	// last runs, once and on its own goroutine, when n reaches 0.
	last func()
}

// begin counts in a statement, of which there is one at a time; done counts it
// out.
func (u *uses) begin(now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked, u.told = now, false
	if u.n == 0 {
		u.since = u.asked
	}
	u.n++
}

// done counts the statement out.
func (u *uses) done() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked = time.Time{}
	u.endLocked()
}

// overdue reports, once for each statement, that it has run for longer than d.
func (u *uses) overdue(d time.Duration) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.asked.IsZero() || u.told || time.Since(u.asked) < d {
		return false
	}
	u.told = true
	return true
}

// runs is for how long the present statement has been running; 0: none runs.
func (u *uses) runs() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.asked.IsZero() {
		return 0
	}
	return max(time.Since(u.asked), 1)
}

// hold counts in what stays open between statements; end counts it out.
func (u *uses) hold() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n == 0 {
		u.since = time.Now()
	}
	u.n++
}

// longerThan reports whether something has been under way for d.
func (u *uses) longerThan(d time.Duration) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.n > 0 && time.Since(u.since) > d
}

// end counts out what was open.
func (u *uses) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.endLocked()
}

func (u *uses) endLocked() {
	u.n--
	if u.n > 0 {
		return
	}
	if u.idle != nil {
		close(u.idle)
		u.idle = nil
	}
	if u.last != nil {
		go u.last()
		u.last = nil
	}
}

// any reports whether something is under way.
func (u *uses) any() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.n > 0
}

// over returns a channel that is closed when nothing is under way.
func (u *uses) over() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n == 0 {
		return closedChan
	}
	if u.idle == nil {
		u.idle = make(chan struct{})
	}
	return u.idle
}

// whenOver runs f on a goroutine of its own as soon as nothing is under way.
func (u *uses) whenOver(f func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n == 0 {
		go f()
		return
	}
	u.last = f
}

var closedChan = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
