package storetest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/internal/storetest"
)

func TestOnMiniredis(t *testing.T) { storetest.Run(t, ours(onMiniredis)) }
func TestOnRedis(t *testing.T)     { storetest.Run(t, ours(onRedis)) }
func TestOnCluster(t *testing.T)   { storetest.Run(t, ours(onCluster)) }
func TestOnSentinel(t *testing.T)  { storetest.Run(t, ours(onSentinel)) }

// go-redis repeats a command whose answer got lost.
func TestOnRedisWithEveryScriptTwice(t *testing.T) {
	storetest.Run(t, ours(func(t testing.TB) redis.UniversalClient {
		c := onRedis(t)
		c.AddHook(lab.ScriptsTwice{})
		return c
	}))
}

// An operator may flush the scripts at any time, and so may a restart.
func TestOnClusterWhileScriptsAreFlushed(t *testing.T) {
	rdb := onCluster(t).(*redis.ClusterClient)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if err := rdb.ScriptFlush(context.Background()).Err(); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped }) // the cases end after this function
	storetest.Run(t, ours(onCluster))
}

func TestStockKeepsWhatItDocuments(t *testing.T) { storetest.RunDocumented(t, stock) }

// keptByStock are the cases beyond its documentation that stock scs passes as
// well. They show that these ask for nothing outlandish, and guard against
// falling behind it.
var keptByStock = []string{
	"goroutines of one handler use its session at once",
	"logged out stays logged out when a slow request reads",
	"a deadline in the past ends the session",
	"a session renewed and destroyed in one request leaves nothing",
	"a request that destroys and then stores gets a session of its own",
	"a visitor without a cookie does not notice that the store fails",
	"a panic under a recoverer outside saves nothing",
	"a panic under a recoverer inside is one whole answer",
	"a handler that commits by itself gets its cookie",
	"a handler that commits and then stores more loses nothing",
	"a stream that began before a logout does not bring the session back",
	"coder's WebSocket talks and sets the cookie",
	"coder's WebSocket talks under chi's logger",
}

// A case that a last-writer-wins manager passed would not guard what it says.
func TestStockFailsTheRest(t *testing.T) {
	for _, c := range storetest.Promised() {
		holds, want := c.Holds(t, stock), slices.Contains(keptByStock, c.Name)
		if holds != want {
			t.Errorf("stock scs passes %q: %v, want %v", c.Name, holds, want)
		}
	}
}
