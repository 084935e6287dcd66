package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/alexedwards/scs/v2/memstore"
	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/internal/storetest"
	"github.com/shardhop/shardhop/sessionstore"
)

var errBroken = errors.New("the store is broken")

// ours is a manager of this project on a Redis of its own.
func ours(client func(t testing.TB) redis.UniversalClient) storetest.Harness {
	return func(t testing.TB) storetest.Subject { return subject(t, client(t), uniquePrefix()) }
}

func subject(t testing.TB, rdb redis.UniversalClient, prefix string) storetest.Subject {
	t.Helper()
	fault := new(fault)
	rdb.AddHook(fault)
	m := sessionstore.New(rdb, patient(prefix))
	return storetest.Subject{
		Manager:  m,
		Settings: m.SessionManager,
		Routes:   m,
		Atomic:   m.Atomic,
		Fail:     fault.broken.Store,
		Stored:   func(t testing.TB) int { return len(ttls(t, rdb, prefix)) },
		Lasting: func(t testing.TB) int {
			n := 0
			for _, ttl := range ttls(t, rdb, prefix) {
				if ttl == -1 {
					n++
				}
			}
			return n
		},
	}
}

// patient is a configuration for tests that are not about a Redis that is slow,
// on a machine that may be.
func patient(prefix string) sessionstore.Config {
	return sessionstore.Config{Prefix: prefix, Timeout: 10 * time.Second, Logger: quiet()}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// prefixes keeps tests on one server apart.
var prefixes atomic.Int64

func uniquePrefix() string { return fmt.Sprintf("s%d:", prefixes.Add(1)) }

// ttls lists the keys under prefix with their TTL.
func ttls(t testing.TB, rdb redis.UniversalClient, prefix string) []time.Duration {
	t.Helper()
	var found []time.Duration
	list := func(ctx context.Context, server *redis.Client) error {
		keys := server.Scan(ctx, 0, prefix+"*", 1000).Iterator()
		for keys.Next(ctx) {
			// One that ended since the scan answers -2.
			if ttl := server.PTTL(ctx, keys.Val()).Val(); ttl != -2 {
				found = append(found, ttl)
			}
		}
		return keys.Err()
	}
	var err error
	switch rdb := rdb.(type) {
	case *redis.ClusterClient:
		err = forEachMaster(t.Context(), rdb, list)
	case *redis.Client:
		err = list(t.Context(), rdb)
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// fault fails commands before they reach Redis.
type fault struct {
	lab.NoHook
	broken atomic.Bool
}

func (f *fault) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if f.broken.Load() {
			cmd.SetErr(errBroken)
			return errBroken
		}
		return next(ctx, cmd)
	}
}

func (f *fault) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if f.broken.Load() {
			return errBroken
		}
		return next(ctx, cmds)
	}
}

// onMiniredis is a client of a miniredis whose clock runs, which by itself it
// does not.
func onMiniredis(t testing.TB) redis.UniversalClient {
	t.Helper()
	mini := miniredis.RunT(t)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-stop:
				return
			case now := <-tick.C:
				mini.FastForward(now.Sub(last))
				last = now
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
	return client(t, mini.Addr())
}

func onRedis(t testing.TB) redis.UniversalClient { return client(t, single.Addr()) }

func onCluster(t testing.TB) redis.UniversalClient {
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func onSentinel(t testing.TB) redis.UniversalClient {
	c := redis.NewFailoverClient(sentinel.Options())
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func client(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// stock is scs as it comes, on its own memory store.
func stock(testing.TB) storetest.Subject {
	store := &breakable{MemStore: memstore.NewWithCleanupInterval(0)}
	m := scs.New()
	m.Store = store
	m.ErrorFunc = func(w http.ResponseWriter, _ *http.Request, _ error) { // scs's own writes to the standard log
		http.Error(w, "Internal Server Error", http.StatusInternalServerError)
	}
	return storetest.Subject{
		Manager:  m,
		Settings: m,
		Fail:     store.broken.Store,
		Stored: func(t testing.TB) int {
			all, err := store.All()
			if err != nil {
				t.Fatal(err)
			}
			return len(all)
		},
	}
}

// breakable is a memory store that can be told to fail.
type breakable struct {
	*memstore.MemStore
	broken atomic.Bool
}

func (b *breakable) Find(token string) ([]byte, bool, error) {
	if b.broken.Load() {
		return nil, false, errBroken
	}
	return b.MemStore.Find(token)
}

func (b *breakable) Commit(token string, packed []byte, expiry time.Time) error {
	if b.broken.Load() {
		return errBroken
	}
	return b.MemStore.Commit(token, packed, expiry)
}

func (b *breakable) Delete(token string) error {
	if b.broken.Load() {
		return errBroken
	}
	return b.MemStore.Delete(token)
}

// forEachMaster calls list for one master after the other.
func forEachMaster(ctx context.Context, rdb *redis.ClusterClient, list func(context.Context, *redis.Client) error) error {
	var mu sync.Mutex
	return rdb.ForEachMaster(ctx, func(ctx context.Context, server *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		return list(ctx, server)
	})
}
