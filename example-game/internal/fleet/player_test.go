package fleet_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// born numbers the players of all tests, which share one database.
var born atomic.Int64

// player is one browser that is signed in. It can play at every instance, as
// behind a load balancer. Safe for use by several goroutines.
type player struct {
	f    *fleet
	name string
	home string
	http *http.Client
}

// join makes a player at instance i.
func (f *fleet) join(i int) *player {
	f.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	f.t.Cleanup(transport.CloseIdleConnections)
	p := &player{
		f: f, name: fmt.Sprintf("player-%d", born.Add(1)),
		http: &http.Client{Jar: jar, Transport: transport, Timeout: soon},
	}
	got := p.ask(i, "POST", "/api/register", fmt.Sprintf(`{"name":%q,"password":"correct horse"}`, p.name))
	if got.status != http.StatusCreated {
		f.t.Fatalf("register: %+v", got)
	}
	p.home = got.shard
	f.players = append(f.players, p)
	return p
}

// settle makes players until n live on shard and one does not, and returns these
// and the others.
func (f *fleet) settle(n int, shard string) (there, elsewhere []*player) {
	f.t.Helper()
	for len(there) < n || len(elsewhere) == 0 {
		p := f.join(0)
		switch {
		case p.home != shard:
			elsewhere = append(elsewhere, p)
		case len(there) < n:
			there = append(there, p)
		}
	}
	return there, elsewhere
}

// answer is what a player got.
type answer struct {
	status int
	shard  string
	code   string // of a refusal, with its body
	retry  string // Retry-After
	took   time.Duration
	err    error
}

// ask sends a request to instance i.
func (p *player) ask(i int, method, path, body string) answer {
	return p.askWith(context.Background(), i, method, path, body)
}

// askWith is ask that ends with ctx. The cookie of one instance counts at all:
// they differ in the port alone.
func (p *player) askWith(ctx context.Context, i int, method, path, body string) (a answer) {
	began := time.Now()
	defer func() { a.took = time.Since(began) }()
	req, err := http.NewRequestWithContext(ctx, method, p.f.games[i].URL()+path, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := p.http.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	a = answer{status: res.StatusCode, shard: res.Header.Get("X-Shard"), retry: res.Header.Get("Retry-After"), err: err}
	if a.status >= 300 {
		a.code = string(text)
	}
	return a
}

func (p *player) me(i int) answer  { return p.ask(i, "GET", "/api/me", "") }
func (p *player) dig(i int) answer { return p.ask(i, "POST", "/api/dig", "") }

// cookie is the value of the session's cookie.
func (p *player) cookie() string {
	u, err := url.Parse(p.f.games[0].URL())
	if err != nil {
		p.f.t.Fatal(err)
	}
	for _, c := range p.http.Jar.Cookies(u) {
		if c.Name == "session" {
			return c.Value
		}
	}
	p.f.t.Fatalf("%s has no cookie", p.name)
	return ""
}

// route is the player's shard and epoch as Redis has them.
type route struct{ shard, epoch string }

func (p *player) route() route {
	p.f.t.Helper()
	sum := sha256.Sum256([]byte(p.cookie()))
	key := "session:" + base64.RawURLEncoding.EncodeToString(sum[:])
	fields, err := p.f.rdb.HMGet(context.Background(), key, "db_server", "epoch").Result()
	if err != nil {
		p.f.t.Fatal(err)
	}
	return route{fmt.Sprint(fields[0]), fmt.Sprint(fields[1])}
}

func routes(players []*player) []route {
	all := make([]route, len(players))
	for i, p := range players {
		all[i] = p.route()
	}
	return all
}

// stayed checks that nobody's route changed.
func stayed(t *testing.T, players []*player, before []route) {
	t.Helper()
	for i, p := range players {
		if now := p.route(); now != before[i] {
			t.Errorf("%s was moved: %v, before %v", p.name, now, before[i])
		}
	}
}

// tally is what some players met. Safe for use by several goroutines.
type tally struct {
	mu       sync.Mutex
	statuses map[int]int
	shards   map[string]int
	waits    []time.Duration
	bad      []answer // everything but 200
	// switches counts, by player, the answers from another shard than the answer
	// before; see play.
	switches map[string]int
}

func newTally() *tally {
	return &tally{statuses: map[int]int{}, shards: map[string]int{}, switches: map[string]int{}}
}

// switched notes that a player was served by another shard than before.
func (c *tally) switched(player string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.switches[player]++
}

func (c *tally) add(a answer) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statuses[a.status]++
	c.shards[a.shard]++
	c.waits = append(c.waits, a.took)
	if a.status != http.StatusOK {
		c.bad = append(c.bad, a)
	}
	return a
}

func (c *tally) longest() time.Duration { return c.quantile(1) }

// quantile is the wait that the share q of all requests did not exceed.
func (c *tally) quantile(q float64) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waits) == 0 {
		return 0
	}
	waits := slices.Sorted(slices.Values(c.waits))
	return waits[int(q*float64(len(waits)-1))]
}

func (c *tally) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("answers %v, shards %v, first refusals %+v", c.statuses, c.shards, c.bad[:min(len(c.bad), 3)])
}

// allServed checks that every request was answered with 200.
func (c *tally) allServed(t *testing.T) {
	t.Helper()
	if len(c.bad) > 0 || len(c.waits) == 0 {
		t.Errorf("%v", c)
	}
}

// play has every player ask for me at one instance after the other, with a pause
// after each answer, until stop is called, which returns what they met.
func play(players []*player, pause time.Duration) (stop func() *tally) {
	c := newTally()
	done := make(chan struct{})
	var wg sync.WaitGroup
	for n, p := range players {
		wg.Go(func() {
			last := ""
			for turn := n; ; turn++ {
				select {
				case <-done:
					return
				case <-time.After(pause):
				}
				a := c.add(p.me(turn % len(p.f.games)))
				if last != "" && a.shard != last {
					c.switched(p.name)
				}
				last = a.shard
			}
		})
	}
	return sync.OnceValue(func() *tally {
		close(done)
		wg.Wait()
		return c
	})
}
