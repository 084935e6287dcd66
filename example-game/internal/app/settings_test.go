package app_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardhop/shardhop/example-game/internal/app"
)

func TestAStartErrorIsOneLine(t *testing.T) {
	for reason, environ := range map[string][]string{
		"a newline in a name":      {"SHARD_A\nB=1"},
		"a newline in a value":     {"ADDR=no\nwhere"},
		"a newline in a host":      {"ADDR=no\nhost:80"},
		"what is no text at all":   {"SHARD_\xff\u2028=1"},
		"a blank token":            {"ADMIN_TOKEN=  "},
		"a token with a newline":   {"ADMIN_TOKEN=secret\n"},
		"a newline in a data name": {"SHARDS=a\nb"},
	} {
		a, err := app.Start(t.Context(), append([]string{"ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0"}, environ...), slog.New(slog.DiscardHandler))
		if err == nil {
			a.Shutdown()
			t.Errorf("%s: it started", reason)
		} else if text := err.Error(); strings.ContainsAny(text, "\n\r\u2028") || strings.Contains(text, "secret") {
			t.Errorf("%s: %q", reason, text)
		}
	}
}

func TestToldToStopBeforeItServes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := app.Run(ctx, []string{"ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0"}, io.Discard, io.Discard); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestRedisLogIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := app.NewRedisLog(slog.New(slog.NewTextHandler(&out, nil)))
		for range 100 {
			l.Printf(t.Context(), "dial %s", "failed")
		}
		time.Sleep(time.Minute) // virtual
		l.Printf(t.Context(), "dial failed again")
		if text := out.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "dial failed again") || !strings.Contains(text, "left_out_before=99") {
			t.Errorf("log: %s", text)
		}
	})
}

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
		{"ADDR=127.0.0.1:99999 COOKIE_SECURE=maybe", "ADDR: port", "no such port"},
		{"ADDR=127.0.0.1:99999 COOKIE_SECURE=maybe", "COOKIE_SECURE", "a port, and another problem with it"},
		{"ADMIN_ADDR=127.0.0.1:", "ADMIN_ADDR: port", "no port"},
		{"ADMIN_ADDR=0.0.0.0:0", "ADMIN_TOKEN", "operators from everywhere without a token"},
		{"SHARD_POLICY=best", "SHARD_POLICY", "no such policy"},
		{"SHARD_TYPO=1", "SHARD_TYPO", "no such variable"},
		{"SHARDS=a", "SHARD_A_DSN", "a shard without a DSN"},
		{"SHARDS=a SHARD_A_DSN=app:hunter2@nowhere", "SHARD_A_DSN", "no DSN"},
		{"SHARD_A_DSN=app:hunter2@tcp(127.0.0.1:1)/game", "SHARDS is not", "a DSN, and no list"},
		{"REDIS_URL=http://:hunter2@127.0.0.1", "REDIS_URL", "no URL of a Redis"},
		{"REDIS_MODE=cluster", "REDIS_URL is not", "a mode, and no Redis"},
		{"SHARDS_FILE=/nowhere/shards", "SHARDS_FILE: cannot be read", "a file that is not there"},
		{"SESSION_LIFETIME=10ms", "SESSION_LIFETIME", "over before the answer is there"},
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
