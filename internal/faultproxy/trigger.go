package faultproxy

import (
	"bytes"
	"slices"
)

// maxMatch bounds the length of a trigger's bytes.
const maxMatch = 1 << 10

// When says at which moment a trigger acts.
type When int

// The moments.
const (
	BeforeForward When = iota // the bytes have not reached the upstream
	AfterForward              // they have; the answer never reaches the client
	AfterReply                // the upstream has answered; the answer is withheld
)

// trigger acts once, on the link whose client sends match.
type trigger struct {
	match []byte
	when  When
	act   func(*link)
	fired chan struct{}
}

func (t *trigger) fire(l *link) {
	t.act(l)
	close(t.fired)
}

// CutAfter resets the connection of the next client that sends match, at the
// given moment. Other connections are left alone. The channel is closed when
// it is done. With BeforeForward, the bytes that were read together with match
// are not forwarded either. AfterReply takes the first bytes that come from the
// upstream after match was sent for the answer, as in a protocol without
// pipelining. match is at most 1 KiB.
func (p *Proxy) CutAfter(match []byte, when When) <-chan struct{} {
	p.t.Helper()
	return p.arm(match, when, (*link).cut)
}

// ForsakeAfter resets the connection of the next client that sends match, as
// CutAfter does, but the upstream never hears of it: for that side the
// connection stays open and silent until the proxy is closed, as after the
// crash of a host or of a router between the two.
func (p *Proxy) ForsakeAfter(match []byte, when When) <-chan struct{} {
	p.t.Helper()
	return p.arm(match, when, (*link).forsake)
}

// SwitchAfter sets the mode for all connections when a client sends match, at
// the given moment; see [Proxy.CutAfter]. The bytes at which it acts have the
// fate of the new mode: those of match with BeforeForward, the answer
// otherwise.
func (p *Proxy) SwitchAfter(match []byte, when When, mode Mode) <-chan struct{} {
	p.t.Helper()
	return p.arm(match, when, func(*link) { p.SetMode(mode) })
}

func (p *Proxy) arm(match []byte, when When, act func(*link)) <-chan struct{} {
	p.t.Helper()
	if len(match) == 0 || len(match) > maxMatch {
		p.t.Fatalf("faultproxy: a match has 1 to %d bytes, not %d", maxMatch, len(match))
	}
	trig := &trigger{match: bytes.Clone(match), when: when, act: act, fired: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = append(p.armed, trig)
	return trig.fired
}

// triggered takes the trigger, if any, whose bytes end in chunk. What was
// sent before the trigger was armed does not set it off, unless its bytes end
// in chunk.
func (p *Proxy) triggered(sent history, chunk []byte) *trigger {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.armed, func(t *trigger) bool { return sent.completes(chunk, t.match) })
	if i < 0 {
		return nil
	}
	trig := p.armed[i]
	p.armed = slices.Delete(p.armed, i, i+1)
	return trig
}

// history is the last bytes that a client has sent, enough to find a match
// that arrives in pieces.
type history []byte

// add appends chunk and forgets what is too old to matter.
func (h *history) add(chunk []byte) {
	*h = append(*h, chunk[max(0, len(chunk)-maxMatch):]...)
	*h = slices.Delete(*h, 0, max(0, len(*h)-maxMatch))
}

// completes reports whether match ends in chunk when chunk follows h.
func (h history) completes(chunk, match []byte) bool {
	before := h[max(0, len(h)-len(match)+1):]
	return bytes.Contains(slices.Concat(before, chunk), match)
}
