package lab_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/lab"
)

func TestRedisClusterServesAllSlots(t *testing.T) {
	began := time.Now()
	c := lab.RedisCluster(t, 3)
	t.Logf("three masters after %v", time.Since(began).Round(time.Millisecond))
	client := c.Client()
	for i := range 30 {
		key := fmt.Sprintf("key %d", i)
		if err := client.Set(t.Context(), key, i, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if got, err := client.Get(t.Context(), key).Int(); err != nil || got != i {
			t.Errorf("%s = %d, %v", key, got, err)
		}
	}
	for _, node := range c.Nodes() {
		if n := node.Client().DBSize(t.Context()).Val(); n == 0 {
			t.Errorf("node %s holds nothing: the slots are not shared", node.Addr())
		}
	}
	parsed, err := redis.ParseClusterURL(c.URL())
	if err != nil || len(parsed.Addrs) != 3 {
		t.Errorf("URL %s: %v, %v", c.URL(), parsed, err)
	}
}

func TestRedisClusterLosesTheSlotsOfADeadNode(t *testing.T) {
	c := lab.RedisCluster(t, 3, lab.WithArgs("--cluster-require-full-coverage", "no"))
	c.Nodes()[1].Kill()
	served, lost := 0, 0
	for i := range 30 {
		if c.Nodes()[0].Client().Get(t.Context(), fmt.Sprintf("key %d", i)).Err() == redis.Nil { //nolint:errorlint // go-redis returns it bare
			served++
		} else {
			lost++
		}
	}
	if served == 0 || lost == 0 {
		t.Errorf("node 0 serves %d keys and points elsewhere for %d", served, lost)
	}
}

func TestSentinelPromotesAReplica(t *testing.T) {
	began := time.Now()
	s := lab.RedisSentinel(t)
	t.Logf("six processes after %v", time.Since(began).Round(time.Millisecond))
	client := s.Client()
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	first := s.MasterAddr()
	s.AwaitReplicas()
	began = time.Now()
	s.FailOver((*lab.RedisServer).Kill)
	t.Logf("promoted after %v", time.Since(began).Round(time.Millisecond))
	if second := s.MasterAddr(); second == first {
		t.Errorf("still %s", second)
	}
	lab.Eventually(t, 10*time.Second, "the client follows", func() bool {
		return client.Get(t.Context(), "k").Val() == "v"
	})

	// Once more, and this time the last write is lost.
	lab.Eventually(t, 10*time.Second, "the client writes", func() bool {
		return client.Set(t.Context(), "k", "kept", 0).Err() == nil
	})
	s.AwaitReplicas()
	s.FailOverForgetting(func() {
		if err := client.Set(t.Context(), "k", "lost", 0).Err(); err != nil {
			t.Error(err)
		}
	})
	lab.Eventually(t, 10*time.Second, "the client follows again", func() bool {
		return client.Get(t.Context(), "k").Err() == nil
	})
	if got := client.Get(t.Context(), "k").Val(); got != "kept" {
		t.Errorf("k = %q", got)
	}
	if len(s.Sentinels()) != 3 {
		t.Errorf("%d sentinels", len(s.Sentinels()))
	}
	parsed, err := redis.ParseFailoverURL(s.URL() + "&master_name=" + lab.MasterName)
	if err != nil || len(parsed.SentinelAddrs) != 3 {
		t.Errorf("URL %s: %v, %v", s.URL(), parsed, err)
	}
}

func TestRedisSpeaksTLS(t *testing.T) {
	s := lab.RedisTLS(t)
	opts, err := redis.ParseURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	opts.TLSConfig.RootCAs = s.RootCAs()
	client := redis.NewClient(opts)
	defer func() { _ = client.Close() }()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
	pem, err := os.ReadFile(s.CAFile())
	if err != nil || !opts.TLSConfig.RootCAs.AppendCertsFromPEM(pem) {
		t.Errorf("%s is no certificate: %v", s.CAFile(), err)
	}
}
