package app_test

import (
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/shardhop/shardhop/example-game/internal/app"
)

func TestWhatStopsTheStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for _, tc := range []struct {
		environ string
		says    string
		reason  string
	}{
		{"ADDR=" + taken.Addr().String(), "ADDR", "the game's port is busy"},
		{"ADMIN_ADDR=" + taken.Addr().String(), "ADMIN_ADDR", "the operators' port is busy"},
		{"ADDR=nowhere", "ADDR", "no address"},
		{"ADMIN_ADDR=nowhere", "ADMIN_ADDR", "no address"},
		{"ADDR=127.0.0.1:99999", "ADDR", "no such port"},
		{"ADMIN_ADDR=0.0.0.0:0", "ADMIN_TOKEN", "operators from everywhere without a token"},
		{"SHARD_POLICY=best", "SHARD_POLICY", "no such policy"},
		{"SHARD_TYPO=1", "SHARD_TYPO", "no such variable"},
		{"SHARDS=a", "SHARD_A_DSN", "a shard without a DSN"},
		{"SHARDS=a SHARD_A_DSN=app:hunter2@nowhere", "SHARD_A_DSN", "no DSN"},
		{"SHARD_A_DSN=app:hunter2@tcp(127.0.0.1:1)/game", "SHARDS is not", "a DSN, and no list"},
		{"REDIS_URL=http://:hunter2@127.0.0.1", "REDIS_URL", "no URL of a Redis"},
		{"REDIS_MODE=cluster", "REDIS_URL is not", "a mode, and no Redis"},
		{"SESSION_LIFETIME=soon", "SESSION_LIFETIME", "no duration"},
		{"SESSION_IDLE_TIMEOUT=5s", "SESSION_IDLE_TIMEOUT", "shorter than the hold"},
		{"COOKIE_SECURE=maybe", "COOKIE_SECURE", "neither yes nor no"},
		{"ADDR=nowhere COOKIE_SECURE=maybe SHARD_ROTATION=back", "COOKIE_SECURE", "all problems at once"},
		{"ADDR=nowhere COOKIE_SECURE=maybe SHARD_ROTATION=back", "SHARD_ROTATION", "all problems at once"},
	} {
		environ := append([]string{"ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0"}, strings.Fields(tc.environ)...)
		a, err := app.Start(t.Context(), environ, slog.New(slog.DiscardHandler))
		if err == nil {
			a.Shutdown()
			t.Errorf("%s: it started", tc.reason)
			continue
		}
		if text := err.Error(); !strings.Contains(text, tc.says) || strings.Contains(text, "\n") || strings.Contains(text, "hunter2") {
			t.Errorf("%s: %q, want one line with %s", tc.reason, text, tc.says)
		}
	}
}
