package sessionstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/sessionstore"
)

// puppet answers every command itself, as told.
type puppet struct {
	lab.NoHook
	calls atomic.Int64

	mu    sync.Mutex
	err   error         // what every command fails with; nil: an empty hash
	takes time.Duration // how long each takes
}

func (p *puppet) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *puppet) delay(takes time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.takes = takes
}

func (p *puppet) get() (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.takes, p.err
}

func (p *puppet) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		p.calls.Add(1)
		takes, _ := p.get()
		select {
		case <-time.After(takes):
		case <-ctx.Done():
		}
		if err := ctx.Err(); err != nil {
			cmd.SetErr(err)
			return err
		}
		_, err := p.get()
		cmd.SetErr(err)
		return err
	}
}

var errLost = errors.New("connection lost")

// TestCircuit tells when calls are let through, in virtual time.
func TestCircuit(t *testing.T) {
	p := new(puppet)
	rdb := redis.NewClient(&redis.Options{})
	rdb.AddHook(p)
	t.Cleanup(func() { _ = rdb.Close() })
	var log lab.Log
	m := sessionstore.New(rdb, sessionstore.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})

	synctest.Test(t, func(t *testing.T) {
		find := func(ctx context.Context) error {
			_, err := m.Load(ctx, "token")
			return err
		}
		want := func(calls int64, target error, reason string) {
			t.Helper()
			p.calls.Store(0)
			if err := find(t.Context()); !errors.Is(err, target) || target == nil && err != nil {
				t.Errorf("%v, want %v: %s", err, target, reason)
			}
			if got := p.calls.Load(); got != calls {
				t.Errorf("%d calls, want %d: %s", got, calls, reason)
			}
		}
		want(1, nil, "all is well")
		p.fail(errLost)
		want(1, errLost, "the first failure")
		want(1, errLost, "the second")
		p.fail(nil)
		want(1, nil, "an answer in between")
		p.fail(errLost)
		for range 3 {
			want(1, errLost, "it takes three in a row")
		}
		want(0, sessionstore.ErrUnavailable, "open")
		time.Sleep(499 * time.Millisecond)
		want(0, sessionstore.ErrUnavailable, "the pause is not over")
		time.Sleep(time.Millisecond)
		want(1, errLost, "the pause is over, one tries")
		want(0, sessionstore.ErrUnavailable, "it failed, and a new pause begins")

		time.Sleep(500 * time.Millisecond)
		gone, leave := context.WithCancel(t.Context())
		leave()
		if err := find(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("a client that left: %v", err)
		}
		want(1, errLost, "a client that left tried nothing, so the next one does")

		time.Sleep(500 * time.Millisecond)
		p.delay(300 * time.Millisecond)
		tries := make(chan error)
		go func() { tries <- find(context.Background()) }()
		synctest.Wait()
		want(0, sessionstore.ErrUnavailable, "one tries already")
		p.fail(nil)
		if err := <-tries; err != nil {
			t.Error(err)
		}
		want(1, nil, "it is back")

		p.delay(time.Hour)
		for range 3 {
			want(1, context.DeadlineExceeded, "a server that is silent for the timeout")
		}
		want(0, sessionstore.ErrUnavailable, "silence opens as well")
		p.delay(0)
		loading := redisError("LOADING Redis is loading the dataset in memory")
		p.fail(loading)
		time.Sleep(500 * time.Millisecond)
		for range 5 {
			want(1, loading, "an error that Redis sends is an answer")
		}
	})
	for text, times := range map[string]int{"Redis does not answer": 2, "Redis answers again": 2} {
		if got := strings.Count(log.String(), text); got != times {
			t.Errorf("%q is logged %d times, want %d", text, got, times)
		}
	}
}

// redisError is an error as a server sends it.
type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

// TestFrozenRedisHoldsNobodyUp freezes Redis under many requests.
func TestFrozenRedisHoldsNobodyUp(t *testing.T) {
	server := lab.Redis(t)
	rdb := server.Client()
	count := new(counter)
	s := newSiteWith(t, rdb, sessionstore.Config{}, nil)
	rdb.AddHook(count)
	b := s.browser()
	b.visit("/put?a=1")
	server.Freeze()
	for range 3 {
		start := time.Now()
		wantUnavailable(t, b.visit("/get?k=a"))
		if waited := time.Since(start); waited > 1500*time.Millisecond {
			t.Errorf("waited %v, promised is a second", waited)
		}
	}
	count.reset()
	start := time.Now()
	for range 50 {
		wantUnavailable(t, b.visit("/get?k=a"))
	}
	allowed := int64(time.Since(start)/(500*time.Millisecond)) + 1
	if trips, _ := count.reset(); trips > allowed {
		t.Errorf("%d of 50 requests asked Redis, want %d at most", trips, allowed)
	}
	server.Thaw()
	lab.Eventually(t, 2*time.Second, "the session is back", func() bool { return b.visit("/get?k=a").body == "1" })
}

// TestFrozenMasterOfACluster: the sessions of the other masters are served.
func TestFrozenMasterOfACluster(t *testing.T) {
	cluster := lab.RedisCluster(t, 3, lab.WithArgs("--cluster-require-full-coverage", "no"))
	rdb := cluster.Client()
	s := newSiteWith(t, rdb, sessionstore.Config{Timeout: 400 * time.Millisecond}, nil)
	frozen := cluster.Nodes()[1]
	var there, elsewhere []*browser
	for i := 0; len(there) < 5 || len(elsewhere) < 5; i++ {
		b := s.browser()
		lab.Eventually(t, 10*time.Second, "a session", func() bool {
			return b.visit(fmt.Sprintf("/put?a=%d", i)).status == http.StatusOK
		})
		master, err := rdb.MasterForKey(t.Context(), b.key())
		if err != nil {
			t.Fatal(err)
		}
		if master.Options().Addr == frozen.Addr() {
			there = append(there, b)
		} else {
			elsewhere = append(elsewhere, b)
		}
	}
	frozen.Freeze()
	for range 2 {
		for _, b := range there[:5] {
			wantUnavailable(t, b.visit("/get?k=a"))
		}
		for _, b := range elsewhere[:5] {
			lab.Eventually(t, time.Second, "a session elsewhere", func() bool { return b.visit("/get?k=a").body != "" })
		}
	}
	frozen.Thaw()
	lab.Eventually(t, 3*time.Second, "the sessions are back", func() bool {
		for _, b := range there {
			if b.visit("/get?k=a").status != http.StatusOK {
				return false
			}
		}
		return true
	})
}

// TestSilentClusterFromTheStart: a client that has never seen the map of its
// cluster waits for it once a request, and not again to tell whose fault it was.
func TestSilentClusterFromTheStart(t *testing.T) {
	var addrs []string
	for range 3 {
		listener, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and that is all
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		addrs = append(addrs, listener.Addr().String())
	}
	rdb := redis.NewUniversalClient(sessionstore.ClientOptions(redis.UniversalOptions{Addrs: addrs}))
	t.Cleanup(func() { _ = rdb.Close() })
	s := newSiteWith(t, rdb, sessionstore.Config{Timeout: 100 * time.Millisecond}, nil)
	b := s.browser()
	b.plant("a-token")
	begin := time.Now()
	for range 3 {
		wantUnavailable(t, b.visit("/get?k=a"))
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("three requests took %v", took)
	}
}

// TestOptionalSession is about pages that look better with a session and can
// do without.
func TestOptionalSession(t *testing.T) {
	mini, rdb := breakable(t)
	var degraded atomic.Bool
	var s *site
	s = newSiteWith(t, rdb, sessionstore.Config{
		Optional: func(r *http.Request) bool { return r.URL.Path != "/get" },
	}, map[string]http.HandlerFunc{"/news": func(w http.ResponseWriter, r *http.Request) {
		degraded.Store(s.sessions.Degraded(r.Context()))
		_, _ = w.Write([]byte("hello " + s.sessions.GetString(r.Context(), "name")))
	}})
	b := s.browser()
	b.visit("/put?name=Ada")
	if got := b.visit("/news").body; got != "hello Ada" || degraded.Load() {
		t.Fatalf("%q, degraded %v", got, degraded.Load())
	}
	mini.SetError("LOADING")
	if p := b.visit("/news"); p.status != http.StatusOK || p.body != "hello" || p.setsCookie() || !degraded.Load() {
		t.Errorf("%d %q, cookie %v, degraded %v", p.status, p.body, p.setsCookie(), degraded.Load())
	}
	if p := b.visit("/claim?shard=A"); p.status != http.StatusOK || p.body != "A" || p.setsCookie() {
		t.Errorf("a route for the request alone: %d %q", p.status, p.body)
	}
	wantUnavailable(t, b.visit("/get?k=name"))
	wantUnavailable(t, b.visit("/put?name=Bob"))
	for _, path := range []string{"/logout", "/renew"} {
		if p := b.visit(path); p.setsCookie() {
			t.Errorf("%s: %d, cookie %q", path, p.status, p.header["Set-Cookie"])
		}
	}
	if p := b.visit("/logout"); p.status == http.StatusOK {
		t.Error("a logout that did not happen is told as done")
	}
	mini.SetError("")
	if got := b.visit("/news").body; got != "hello Ada" || degraded.Load() {
		t.Errorf("Redis is back: %q, degraded %v", got, degraded.Load())
	}
}
