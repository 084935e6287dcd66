package shardrouter

import "sync"

// news wakes those who wait for something to change. Safe for use by several
// goroutines.
type news struct {
	mu sync.Mutex // guards ch
	ch chan struct{}
}

func newNews() *news { return &news{ch: make(chan struct{})} }

// next returns a channel that the next spread closes.
func (n *news) next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ch
}

func (n *news) spread() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.ch)
	n.ch = make(chan struct{})
}
