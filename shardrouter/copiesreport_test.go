package shardrouter_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

func TestSameRows(t *testing.T) {
	tests := []struct{ shards, clusters, want, reason string }{
		{"a b c", "a:u b:u c:u", "a b c", "one cluster"},
		{"a b c", "", "a | b | c", "none at all: unproved is not equal to unproved"},
		{"a b c", "a:u c:u", "a c | b", "one that is in none"},
		{"a b c d", "a:u b:v c:u d:v", "a c | b d", "two clusters"},
	}
	for _, tt := range tests {
		clusters := map[string]string{}
		for word := range strings.FieldsSeq(tt.clusters) {
			shard, cluster, _ := strings.Cut(word, ":")
			clusters[shard] = cluster
		}
		if got := shardrouter.SameRows(ring(tt.shards), clusters); got != tt.want {
			t.Errorf("%s of %s: %q, want %q: %s", tt.clusters, tt.shards, got, tt.want, tt.reason)
		}
	}
}

// Shards of other rows rotate as configured, and are told of: once, not at
// every fault.
func TestShardsOfOtherRowsAreReportedLoudly(t *testing.T) {
	var log lab.Log
	told := make(chan [][]string, 10)
	f := newFleet(t, 3, func(c *shardrouter.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c.Observer.Copies = func(_ string, sets [][]string) { told <- sets }
		c.Shards[2].Group = "west" // alone in its group: there is nothing to tell
	})
	select {
	case sets := <-told:
		if len(sets) != 2 {
			t.Errorf("told of %v, want each shard by itself", sets)
		}
	case <-time.After(15 * time.Second):
		t.Fatal("told of nothing")
	}
	f.set(faultproxy.Refuse, "server_1")
	f.wait(t, healthcache.Down, "server_1")
	if got := f.served(t, "server_1"); got != "server_2" {
		t.Errorf("a session on the dead server_1 was served by %s, want server_2", got)
	}
	f.set(faultproxy.Pass, "server_1")
	f.wait(t, healthcache.Up, "server_1")
	const line = "a rotated player starts on other rows"
	if n := strings.Count(log.String(), line); n != 1 {
		t.Errorf("%d lines say %q, want 1:\n%s", n, line, log.String())
	}
}
