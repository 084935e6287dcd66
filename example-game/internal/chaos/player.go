package chaos

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	// settleFor is how long a deed that failed is repeated with its key.
	settleFor = time.Minute
	// settlePause is the time between two such tries.
	settlePause = 100 * time.Millisecond
	// maxGift bounds a transfer.
	maxGift = 3
	// oneInRepeated is how many deeds with a key there are for each that is
	// repeated although it succeeded.
	oneInRepeated = 10
)

// player digs, gives and looks, one request after the other. All of it is for
// one goroutine at a time but shard.
type player struct {
	name    string
	others  []string
	book    *Book
	browser *browser
	rand    *rand.Rand
	score   Score
	gold    int64 // at least, as the last answer told; 0 when nobody can tell
	keys    int   // given out so far
	content bool  // repeats nothing that succeeded

	shard atomic.Pointer[string] // the last that answered
}

// deed is a call that changes gold, and what it changes.
type deed struct {
	call
	book func(told bool)
}

// act sends one request: half of them read, half write, and half of those have
// a key.
func (p *player) act() {
	switch n := p.rand.IntN(100); {
	case n < 40:
		p.look()
	case n < 50:
		p.count(p.browser.do(call{method: http.MethodGet, path: "/api/leaderboard"}))
	case n < 85:
		p.do(p.dig())
	default:
		p.do(p.give())
	}
}

// look reads the player's gold. Others only ever add to it, so that less than
// the player was told before is a read that came too early.
func (p *player) look() {
	a := p.browser.do(call{method: http.MethodGet, path: "/api/me"})
	if p.count(a) && a.gold() < p.gold {
		p.score.Stale++
	}
}

func (p *player) dig() deed {
	return deed{call: p.post("/api/dig", ""), book: func(told bool) { p.book.Dug(p.name, told) }}
}

func (p *player) give() deed {
	to, amount := p.others[p.rand.IntN(len(p.others))], 1+p.rand.Int64N(maxGift)
	return deed{
		call: p.post("/api/transfer", fmt.Sprintf(`{"to":%q,"amount":%d}`, to, amount)),
		book: func(told bool) { p.book.Gave(p.name, to, amount, told) },
	}
}

// post makes a call, every other one with a key.
func (p *player) post(path, body string) call {
	c := call{method: http.MethodPost, path: path, body: body}
	if p.rand.IntN(2) == 0 {
		p.keys++
		c.key = p.name + "-" + strconv.Itoa(p.keys)
	}
	return c
}

// do sends a deed and notes in the book what came of it.
func (p *player) do(d deed) {
	a := p.browser.do(d.call)
	if !p.count(a) {
		if d.key == "" {
			p.unknown(d)
			return
		}
		if a = p.settle(d); a.failure() != "" {
			p.unknown(d)
			return
		}
	}
	if a.status != http.StatusOK {
		return // not enough gold
	}
	d.book(true)
	p.gold = a.gold()
	if d.key != "" && !p.content && p.rand.IntN(oneInRepeated) == 0 {
		p.repeat(d, a)
	}
}

// unknown notes a deed of which nobody can tell whether it was done.
func (p *player) unknown(d deed) {
	d.book(false)
	p.gold = 0
}

// count notes an answer, and reports whether it is a good one.
func (p *player) count(a answer) bool {
	failure := a.failure()
	p.score.request(a.took, failure)
	if a.status == http.StatusUnauthorized {
		p.score.LoggedOut++
	}
	if shard := a.header.Get("X-Shard"); shard != "" {
		p.shard.Store(&shard)
	}
	return failure == ""
}

// settle repeats a deed with its key until it is known what became of it. The
// answer that it returns is no good when that was in vain.
func (p *player) settle(d deed) answer {
	for deadline := time.Now().Add(settleFor); ; {
		p.score.Repeats++
		a := p.browser.do(d.call)
		if a.failure() == "" || time.Now().After(deadline) {
			return a
		}
		<-time.After(settlePause)
	}
}

// repeat sends a deed that succeeded again, and wants the same answer.
func (p *player) repeat(d deed, first answer) {
	a := p.browser.do(d.call)
	if p.count(a) && (a.body != first.body || a.header.Get("Idempotency-Replayed") != "true") {
		p.score.fail("a repeat with its key got another answer")
	}
}
