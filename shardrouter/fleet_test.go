package shardrouter_test

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// fleet is a router over shards server_1..n, each behind a proxy of its own in
// front of the one server.
type fleet struct {
	*shardrouter.Router
	proxies map[string]*faultproxy.Proxy

	mu       sync.Mutex
	attempts []shardrouter.Attempt
	leaks    int
}

func newFleet(t *testing.T, n int, change ...func(*shardrouter.Config)) *fleet {
	t.Helper()
	f := &fleet{proxies: map[string]*faultproxy.Proxy{}}
	cfg := shardrouter.Config{
		HealthInterval: 100 * time.Millisecond,
		HoldTimeout:    shardrouter.HoldNone,
		Logger:         quiet(),
		Observer: shardrouter.Observer{
			Attempt: f.attempt,
			Leaked:  func(string) { f.mu.Lock(); f.leaks++; f.mu.Unlock() },
		},
	}
	for i := range n {
		name := "server_" + string(rune('1'+i))
		f.proxies[name] = faultproxy.New(t, server.Addr())
		cfg.Shards = append(cfg.Shards, shardrouter.Shard{Name: name, DSN: dsnAt(f.proxies[name].Addr())})
	}
	for _, c := range change {
		c(&cfg)
	}
	router, err := shardrouter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f.Router = router
	t.Cleanup(func() { f.end(t) })
	f.wait(t, healthcache.Up, router.Shards()...)
	return f
}

// dsnAt is the application's DSN of the server with another address.
func dsnAt(addr string) shardrouter.DSN {
	return shardrouter.DSN(strings.Replace(server.DSN(), server.Addr(), addr, 1))
}

// end holds the invariant of every test: no lease is out and nobody waits.
func (f *fleet) end(t *testing.T) {
	for _, s := range f.Stats() {
		if s.InUse != 0 || s.Waiting != 0 {
			t.Errorf("%s: %d leases out and %d waiting at the end", s.Shard, s.InUse, s.Waiting)
		}
	}
	if err := f.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func (f *fleet) attempt(a shardrouter.Attempt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attempts = append(f.attempts, a)
}

// failed returns the failed attempts so far, and forgets them.
func (f *fleet) failed() []shardrouter.Attempt {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.attempts
	f.attempts = nil
	return a
}

func (f *fleet) leaked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leaks
}

func (f *fleet) set(mode faultproxy.Mode, shards ...string) {
	for _, s := range shards {
		f.proxies[s].SetMode(mode)
	}
}

// wait waits until the shards are in state.
func (f *fleet) wait(t *testing.T, state healthcache.State, shards ...string) {
	t.Helper()
	for _, s := range shards {
		lab.Eventually(t, 15*time.Second, s+" is "+string(state), func() bool {
			return f.Health().View(s).State == state
		})
	}
}

// lease takes a lease for a session on shard and checks that it works.
func (f *fleet) lease(t *testing.T, shard string) *shardrouter.Lease {
	t.Helper()
	l, err := f.Lease(t.Context(), on(shard), "")
	if err != nil {
		t.Fatalf("no lease for a session on %s: %v", shard, err)
	}
	var one int
	if err := l.Conn().QueryRowContext(t.Context(), "SELECT 1").Scan(&one); err != nil {
		l.Release()
		t.Fatalf("the lease of %s does not work: %v", l.Shard(), err)
	}
	return l
}

// served takes a lease for a session on shard, gives it back, and returns the
// shard that served it.
func (f *fleet) served(t *testing.T, shard string) string {
	t.Helper()
	l := f.lease(t, shard)
	defer l.Release()
	return l.Shard()
}

func on(shard string) shardrouter.Route {
	return shardrouter.Route{Group: shardrouter.DefaultGroup, Shard: shard, Home: shard, Epoch: 1}
}

// isUnavailable reports whether err is the typed error for cause.
func isUnavailable(err, cause error) bool {
	var u *shardrouter.UnavailableError
	return errors.As(err, &u) && errors.Is(err, cause)
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
