package storetest_test

import (
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/shardhop/shardhop/internal/lab"
)

// The servers of all tests but those that break them.
var (
	single   *lab.RedisServer
	cluster  *lab.ClusteredRedis
	sentinel *lab.SentinelRedis
)

func TestMain(m *testing.M) {
	redis.SetLogger(silence{}) // every client reports the master that it finds
	os.Exit(lab.Main(m, func(t testing.TB) {
		single = lab.Redis(t)
		cluster = lab.RedisCluster(t, 3)
		sentinel = lab.RedisSentinel(t)
	}, func() error {
		return goleak.Find(
			// scs.New starts it and has no safe way to stop it.
			goleak.IgnoreAnyFunction("github.com/alexedwards/scs/v2/memstore.(*MemStore).startCleanup"),
		)
	}))
}

// silence is a logger of go-redis.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
