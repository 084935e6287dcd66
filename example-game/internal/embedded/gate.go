package embedded

import (
	"errors"
	"time"
)

var (
	errGateTimeout = errors.New("embedded: gate not free in time")
	errGateLeft    = errors.New("embedded: connection ended while it waited for the gate")
)

// gate lets one holder in at a time. Those who wait are let in in the order of
// their coming, since a channel serves its blocked senders that way.
type gate struct{ holder chan struct{} }

func newGate() *gate { return &gate{holder: make(chan struct{}, 1)} }

// enter waits until the gate is free, for at most wait, or until left closes.
func (g *gate) enter(wait time.Duration, left <-chan struct{}) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case g.holder <- struct{}{}:
		return nil
	case <-timer.C:
		return errGateTimeout
	case <-left:
		return errGateLeft
	}
}

// leave frees the gate. Only the holder calls it.
func (g *gate) leave() { <-g.holder }
