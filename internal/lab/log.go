package lab

import (
	"strings"
	"sync"
)

// Log keeps what is written to it, for a test that reads the log of a server
// which still runs. The zero value is empty. It is safe for use by several
// goroutines and must not be copied.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write never fails.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns everything that has been written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
