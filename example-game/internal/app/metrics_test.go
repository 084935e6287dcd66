package app_test

import (
	"net/http"
	"strings"
	"testing"
)

// Operators' tools get what the library counts.
func TestMetrics(t *testing.T) {
	game := start(t)
	ann := newClient(t, game.URL())
	shard := ann.register("ann").field("shard")
	ann.want(http.StatusOK, "POST", "/api/dig", "")
	text := newClient(t, game.AdminURL()).want(http.StatusOK, "GET", "/metrics", "").body
	for _, line := range []string{
		`shardhop_shard_state{shard="` + shard + `",state="up"} 1`,
		`shardhop_leases_total{shard="` + shard + `"} `,
		`go_goroutines `,
	} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("no line %s in:\n%s", line, text)
		}
	}
	if strings.Contains(text, "app:") {
		t.Error("an account is told")
	}
}

// The embedded nodes hold the same rows, and that is proved.
func TestEmbeddedNodesAreCopies(t *testing.T) {
	game := start(t)
	admin := newClient(t, game.AdminURL())
	eventually(t, "all are copies of each other", func() bool {
		text := admin.want(http.StatusOK, "GET", "/metrics", "").body
		for _, shard := range []string{"server_1", "server_2", "server_3"} {
			if !strings.Contains(text, `shardhop_shards_of_other_rows{shard="`+shard+`"} 0`+"\n") {
				return false
			}
		}
		return true
	})
}
