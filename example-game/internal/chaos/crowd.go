package chaos

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// password is that of every player.
const password = "correct horse"

// Crowd is players of one game. Its methods are for one goroutine.
type Crowd struct {
	book    *Book
	players []*player
	rand    *rand.Rand
}

// NewCrowd registers n players of the game at base, a URL. What they do depends
// on seed and on the answers. Close the crowd when it is done.
func NewCrowd(base string, n int, seed uint64) (*Crowd, error) {
	c := &Crowd{book: &Book{}, rand: rand.New(rand.NewPCG(seed, 0))}
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("player-%d", i))
	}
	for i, name := range names {
		p := &player{
			name: name, others: slices.Concat(names[:i], names[i+1:]), book: c.book,
			browser: newBrowser(base), rand: rand.New(rand.NewPCG(seed, uint64(i)+1)),
		}
		c.players = append(c.players, p)
		a := p.browser.do(call{method: http.MethodPost, path: "/api/register", body: fmt.Sprintf(`{"name":%q,"password":%q}`, name, password)})
		if a.status != http.StatusCreated {
			c.Close()
			return nil, fmt.Errorf("register %s: %d %s %w", name, a.status, a.body, a.err)
		}
		p.count(a)
		p.score = Score{}
	}
	return c, nil
}

// Close ends the connections of the players.
func (c *Crowd) Close() {
	for _, p := range c.players {
		p.browser.close()
	}
}

// RepeatNothing has the players repeat no deed that succeeded. Where a fault may
// undo one, its repeat does it again.
func (c *Crowd) RepeatNothing() {
	for _, p := range c.players {
		p.content = true
	}
}

// Book has what the players were told.
func (c *Crowd) Book() *Book { return c.book }

// Shard returns the shard that last served a player who is chosen at random.
func (c *Crowd) Shard() string { return *c.players[c.rand.IntN(len(c.players))].shard.Load() }

// Shards counts the players by the shard that last served them.
func (c *Crowd) Shards() map[string]int {
	counts := map[string]int{}
	for _, p := range c.players {
		counts[*p.shard.Load()]++
	}
	return counts
}

// Play lets everybody play while meanwhile runs, and returns what they met
// when each has the answer to the last request.
func (c *Crowd) Play(meanwhile func()) Score {
	var stop atomic.Bool
	var playing sync.WaitGroup
	for _, p := range c.players {
		playing.Go(func() {
			for !stop.Load() {
				p.act()
			}
		})
	}
	func() {
		defer playing.Wait() // also when meanwhile ends the test
		defer stop.Store(true)
		meanwhile()
	}()
	var sum Score
	for _, p := range c.players {
		sum.Add(p.score)
		p.score = Score{}
	}
	return sum
}
