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
