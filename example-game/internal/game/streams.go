package game

import (
	"slices"
	"sync"
)

const (
	maxStreams       = 1000 // of one process
	maxPlayerStreams = 8    // of one player: more tabs than anybody looks at
)

// streams knows the open event streams. A player who opens one too many loses
// the oldest of their own, so that nobody can take everybody's and a page that
// was left open somewhere locks nobody out. Its methods are safe for use by
// several goroutines.
type streams struct {
	mu    sync.Mutex
	count int
	open  map[player][]chan struct{} // oldest first
}

func newStreams() *streams { return &streams{open: map[player][]chan struct{}{}} }

// enter admits a stream of p; false when the process has no room. The channel
// is closed when the stream has to make way for a newer one. Who entered must
// leave with it.
func (s *streams) enter(p player) (makeWay chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.open[p]; len(own) >= maxPlayerStreams {
		close(own[0])
		s.removeLocked(p, own[0])
	}
	if s.count >= maxStreams {
		return nil, false
	}
	makeWay = make(chan struct{})
	s.open[p] = append(s.open[p], makeWay)
	s.count++
	return makeWay, true
}

func (s *streams) leave(p player, makeWay chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(p, makeWay)
}

// removeLocked forgets a stream, if it is not forgotten already.
func (s *streams) removeLocked(p player, makeWay chan struct{}) {
	i := slices.Index(s.open[p], makeWay)
	if i < 0 {
		return
	}
	s.count--
	if s.open[p] = slices.Delete(s.open[p], i, i+1); len(s.open[p]) == 0 {
		delete(s.open, p)
	}
}
