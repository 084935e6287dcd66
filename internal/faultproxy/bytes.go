package faultproxy

// Side is one of the two that talk through a proxy.
type Side int

// The sides.
const (
	Client Side = iota
	Upstream
)

// limit lets so many bytes of one side of one link through.
type limit struct {
	client string // the address of the link's client
	from   Side
	left   int
}

// CutWithin passes n more bytes that come from a side of one connection, and
// closes both ends when there are more: a message of up to n bytes passes whole.
// client is the local address of the connection at its client. Only the last call
// counts.
func (p *Proxy) CutWithin(client string, from Side, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = &limit{client: client, from: from, left: n}
}

// spend takes the bytes of a chunk from the limit of its link, if there is any.
// It returns how many may pass.
func (p *Proxy) spend(l *link, from Side, chunk []byte) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit == nil || p.limit.from != from || p.limit.client != l.client.RemoteAddr().String() {
		return len(chunk)
	}
	n := min(p.limit.left, len(chunk))
	p.limit.left -= n
	return n
}

// limited passes on what a limit leaves of a chunk, and ends the link where that
// is not all.
func (l *link) limited(from Side, chunk []byte, pass func(chunk []byte) bool) bool {
	n := l.proxy.spend(l, from, chunk)
	if n == len(chunk) {
		return pass(chunk)
	}
	if n > 0 && !pass(chunk[:n]) {
		return false
	}
	l.close()
	return false
}
