package storetest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/sessionstore"
)

// A client that an application makes itself, with the recommended options, has
// nothing but the manager to bound its calls as a whole.
func TestSilentServersUnderRecommendedOptions(t *testing.T) {
	const promised, busy = time.Second, time.Second
	single := lab.Redis(t)
	cluster := lab.RedisCluster(t, 3, lab.WithArgs("--cluster-node-timeout", "30000"))
	set := lab.RedisSentinel(t)
	tests := []struct {
		name   string
		opts   redis.UniversalOptions
		silent []*lab.RedisServer
	}{
		{"standalone", redis.UniversalOptions{Addrs: []string{single.Addr()}}, []*lab.RedisServer{single}},
		{"cluster", redis.UniversalOptions{Addrs: cluster.Addrs()}, cluster.Nodes()},
		{"sentinel", sentinelOptions(set), append(set.Sentinels(), set.Master())},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rdb := recommended(t, test.opts)
			m := sessionstore.New(rdb, sessionstore.Config{Logger: quiet()})
			token := storePlayer(t, m)
			loaded := load(t, m, token)
			m.Put(loaded, "a", "1")
			for _, server := range test.silent {
				server.Freeze()
			}
			calls := map[string]func() error{
				"load": func() error { _, err := m.Load(t.Context(), token); return err },
				"save": func() error { _, _, err := m.Commit(loaded); return err },
			}
			for name, call := range calls {
				began := time.Now()
				err := call()
				if took := time.Since(began); err == nil || took > promised+busy {
					t.Errorf("%s: %v after %v", name, err, took)
				}
			}
			for _, server := range test.silent {
				server.Thaw()
			}
			if got := m.GetString(load(t, m, token), "uid"); got != "7" {
				t.Errorf("afterwards the player is %q", got)
			}
		})
	}
}

// recommended returns a client with the recommended options.
func recommended(t testing.TB, opts redis.UniversalOptions) redis.UniversalClient {
	t.Helper()
	c := redis.NewUniversalClient(sessionstore.ClientOptions(opts))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func sentinelOptions(set *lab.SentinelRedis) redis.UniversalOptions {
	opts := set.Options()
	return redis.UniversalOptions{Addrs: opts.SentinelAddrs, MasterName: opts.MasterName}
}
