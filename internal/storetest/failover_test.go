package storetest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/sessionstore"
)

// recovery bounds how long after a promotion every player is served again.
const recovery = 10 * time.Second

func TestFailoverLogsNobodyOut(t *testing.T) {
	ends := map[string]func(*lab.RedisServer){
		"killed": (*lab.RedisServer).Kill,
		"frozen": (*lab.RedisServer).Freeze,
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			set := lab.RedisSentinel(t)
			c := newCrowd(t, set)
			stop := c.play()
			defer stop()
			lab.Eventually(t, recovery, "everybody plays", c.everybodyServed)
			var old *lab.RedisServer
			set.FailOver(func(master *lab.RedisServer) {
				old = master
				// What Redis has acknowledged and not replicated is lost with
				// the master, which is no fault of the sessions'.
				c.writes.Lock()
				defer c.writes.Unlock()
				set.AwaitReplicas()
				end(master)
			})
			c.forgetServed()
			lab.Eventually(t, recovery, "everybody plays again", c.everybodyServed)
			old.Thaw() // for a moment there are two masters
			c.forgetServed()
			lab.Eventually(t, recovery, "everybody plays on", c.everybodyServed)
			stop()
			c.wantScores()
		})
	}
}

// crowd is players who play, and want to stay who they are.
type crowd struct {
	t       *testing.T
	url     string
	players []*player
	writes  sync.RWMutex // held by whoever stores
}

type player struct {
	name   string
	client *http.Client

	mu     sync.Mutex // held by the player's own goroutine and the test's
	served bool
	saved  int // the last score that was confirmed
	sent   int // the last score that was sent
}

func newCrowd(t *testing.T, set *lab.SentinelRedis) *crowd {
	t.Helper()
	m := sessionstore.New(recommended(t, sentinelOptions(set)), sessionstore.Config{Logger: quiet()})
	mux := http.NewServeMux()
	mux.HandleFunc("/login", func(_ http.ResponseWriter, r *http.Request) {
		m.Put(r.Context(), "name", r.FormValue("name"))
	})
	mux.HandleFunc("/play", func(w http.ResponseWriter, r *http.Request) {
		if score := r.FormValue("score"); score != "" {
			m.Put(r.Context(), "score", score)
		}
		_, _ = fmt.Fprintf(w, "%s %s", m.GetString(r.Context(), "name"), m.GetString(r.Context(), "score"))
	})
	server := httptest.NewServer(m.LoadAndSave(mux))
	t.Cleanup(server.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	c := &crowd{t: t, url: server.URL}
	for i := range 20 {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		p := &player{name: fmt.Sprintf("player_%d", i), client: &http.Client{Jar: jar, Transport: transport}}
		lab.Eventually(t, recovery, p.name+" is logged in", func() bool {
			status, _, err := c.get(t.Context(), p, "/login?name="+p.name)
			return err == nil && status == http.StatusOK
		})
		c.players = append(c.players, p)
	}
	return c
}

// play lets every player read and store in turns until stop.
func (c *crowd) play() (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	var wg sync.WaitGroup
	for _, p := range c.players {
		wg.Go(func() {
			for ctx.Err() == nil {
				c.read(ctx, p)
				c.store(ctx, p)
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

func (c *crowd) read(ctx context.Context, p *player) {
	status, body, err := c.get(ctx, p, "/play")
	if err == nil {
		c.judge(p, status, body)
	}
}

func (c *crowd) store(ctx context.Context, p *player) {
	c.writes.RLock()
	defer c.writes.RUnlock()
	p.mu.Lock()
	p.sent++
	score := p.sent
	p.mu.Unlock()
	status, body, err := c.get(ctx, p, "/play?score="+strconv.Itoa(score))
	if err != nil || !c.judge(p, status, body) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.saved, p.served = score, true
}

// judge reports whether an answer is the player's own. A session out of reach
// is no fault, another's or nobody's is.
func (c *crowd) judge(p *player, status int, body string) bool {
	var name, score string
	_, _ = fmt.Sscan(body, &name, &score)
	switch {
	case status == http.StatusServiceUnavailable:
		return false
	case status != http.StatusOK || name != p.name:
		c.t.Errorf("%s was answered %d %q", p.name, status, body)
		return false
	}
	return true
}

func (c *crowd) get(ctx context.Context, p *player, path string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		return 0, "", err
	}
	res, err := p.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

// everybodyServed reports whether every player has stored something since
// forgetServed.
func (c *crowd) everybodyServed() bool {
	for _, p := range c.players {
		p.mu.Lock()
		served := p.served
		p.mu.Unlock()
		if !served {
			return false
		}
	}
	return true
}

func (c *crowd) forgetServed() {
	for _, p := range c.players {
		p.mu.Lock()
		p.served = false
		p.mu.Unlock()
	}
}

// wantScores checks that no confirmed score was lost. One that was sent and not
// confirmed may have been stored or not.
func (c *crowd) wantScores() {
	c.t.Helper()
	for _, p := range c.players {
		var body string
		lab.Eventually(c.t, recovery, p.name+" is served", func() bool {
			status, text, err := c.get(c.t.Context(), p, "/play")
			body = text
			return err == nil && status == http.StatusOK
		})
		var name string
		var score int
		_, _ = fmt.Sscan(body, &name, &score)
		if name != p.name || score < p.saved || score > p.sent {
			c.t.Errorf("%s has %q; saved %d, sent %d", p.name, body, p.saved, p.sent)
		}
	}
}

// Redis acknowledges a move of the route and forgets it in a failover; another
// instance then gives the same epoch to another shard.
func TestFailoverThatForgetsTheLastMove(t *testing.T) {
	set := lab.RedisSentinel(t)
	one := sessionstore.New(recommended(t, sentinelOptions(set)), sessionstore.Config{Logger: quiet()})
	two := sessionstore.New(recommended(t, sentinelOptions(set)), sessionstore.Config{Logger: quiet()})
	token := storePlayer(t, one)
	routed := load(t, one, token)
	a := claimed(routed, t, one, "A")
	set.AwaitReplicas()

	var b sessionstore.Route
	set.FailOverForgetting(func() { b = claimed(routed, t, one, "B") })
	if b.Shard != "B" || b.Epoch != 2 {
		t.Fatalf("before the failover: %+v", b)
	}

	elsewhere := load(t, two, token)
	if r, _ := two.Route(elsewhere); r != a {
		t.Fatalf("the new master knows %+v: the failover forgot nothing", r)
	}
	c := claimed(elsewhere, t, two, "C")
	if c.Epoch != b.Epoch || c.Shard != "C" {
		t.Fatalf("the second instance moved to %+v", c)
	}
	if got := claimed(routed, t, one, "D"); got != c {
		t.Errorf("a claim on the forgotten route gave %+v, want to follow %+v", got, c)
	}
	if got := claimed(routed, t, one, "E"); got != c.Moved("E") {
		t.Errorf("the next claim gave %+v", got)
	}
	for _, m := range []*sessionstore.Manager{one, two} {
		if r, _ := m.Route(load(t, m, token)); r != c.Moved("E") {
			t.Errorf("an instance reads %+v", r)
		}
	}
}

// claimed moves the route as seen in ctx, as soon as Redis is there.
func claimed(ctx context.Context, t *testing.T, m *sessionstore.Manager, shard string) (stands sessionstore.Route) {
	t.Helper()
	lab.Eventually(t, recovery, "a claim of "+shard, func() bool {
		base, _ := m.Route(ctx)
		var err error
		stands, err = m.Claim(ctx, base.Moved(shard))
		return err == nil
	})
	return stands
}

func load(t *testing.T, m *sessionstore.Manager, token string) (ctx context.Context) {
	t.Helper()
	lab.Eventually(t, recovery, "the session is loaded", func() bool {
		var err error
		ctx, err = m.Load(t.Context(), token)
		return err == nil
	})
	return ctx
}
