package shardhop_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop"
)

func TestRedisURLErrorsKeepTheSecret(t *testing.T) {
	const secret = "hunter2"
	tests := []struct {
		name   string
		url    string
		mode   shardhop.RedisMode
		master string
		reason string // what the operator must be told
	}{
		{"no scheme", "user:hunter2@localhost:6379", "", "", "want redis://"},
		{"other scheme", "http://u:hunter2@localhost", "", "", "want redis://"},
		{"no host", "redis://:hunter2@", "", "", "want redis://"},
		{"slash in the password cuts the URL there", "redis://u:hun/hunter2@localhost", "", "", "want redis://"},
		{"question mark in the password makes it an option", "redis://u:12?hunter2@localhost", "", "", "want redis://"},
		{"bad escape", "redis://u:%zzhunter2@localhost", "", "", "want redis://"},
		{"database is no number", "redis://u:hunter2@localhost/hunter2", "", "", "want redis://"},
		{"option of no client", "redis://u:hunter2@localhost?hunter2=1", "", "", "unknown option"},
		{"option out of form", "redis://u:hunter2@localhost?read_timeout=hunter2", "", "", "want redis://"},
		{"cluster over a socket", "unix:///hunter2", "cluster", "", "standalone only"},
		{"further host without port", "redis://u:hunter2@a?addr=hunter2", "cluster", "", "addr=host:port"},
		{"port that cannot be", "redis://u:hunter2@a:65536", "", "", "want redis://"},
		{"port 0", "redis://u:hunter2@a:0", "", "", "want redis://"},
		{"port cut off", "redis://u:hunter2@a:", "", "", "want redis://"},
		{"port of words", "redis://u:hunter2@a:hunter2", "", "", "want redis://"},
		{"further host whose port cannot be", "redis://u:hunter2@a?addr=b:99999", "cluster", "", "1 to 65535"},
		{"further sentinel without a name", "redis://u:hunter2@a?addr=:26379", "sentinel", "m", "want redis://"},
		{"database below zero", "redis://u:hunter2@a/-1", "", "", "want redis://"},
		{"database below zero as an option", "redis://u:hunter2@a?db=-1", "", "", "want redis://"},
		{"a cluster has one database", "redis://u:hunter2@a/3", "cluster", "", "want redis://"},
		{"host where a socket's path belongs", "unix://hunter2/redis.sock", "", "", "want redis://"},
		{"socket without a path", "unix://u:hunter2@", "", "", "want redis://"},
		{"fragment, as of a password with #", "redis://u:hunter2@a:6379#hunter2", "", "", "want redis://"},
		{"no authority", "redis:hunter2", "", "", "want redis://"},
		{"options cut off by a semicolon", "redis://u:hunter2@a?read_timeout=1s;hunter2=1", "", "", "want redis://"},
		{"pool of less than nothing makes go-redis panic", "redis://u:hunter2@a?pool_size=-1", "", "", "want redis://"},
		{"pool beyond all numbers", "redis://u:hunter2@a?pool_size=99999999999", "", "", "want redis://"},
		{"no such protocol", "redis://u:hunter2@a?protocol=7", "", "", "want redis://"},
		{"cluster's replicas lag", "redis://u:hunter2@a?read_only=true", "cluster", "", "from the master"},
		{"sentinel without a master", "redis://u:hunter2@a", "sentinel", "", "master is missing"},
		{"sentinel over a socket", "unix:///hunter2", "sentinel", "m", "standalone only"},
		{"sentinel's replicas lag", "redis://u:hunter2@a?replica_only=1", "sentinel", "m", "from the master"},
		{"routing by latency makes go-redis panic", "redis://u:hunter2@a?route_by_latency=1", "sentinel", "m", "from the master"},
		{"no such mode", "redis://u:hunter2@a", "clustre", "", "want standalone, cluster or sentinel"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client, err := shardhop.NewRedis(tt.url, tt.mode, tt.master)
			if err == nil {
				client.Close()
				t.Fatal("accepted")
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows the password: %v", err)
			}
			if !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("error %q does not say %q", err, tt.reason)
			}
		})
	}
}

// A configuration is printed at start-up by whoever looks for a mistake in it.
func TestPrintedConfigKeepsTheSecret(t *testing.T) {
	const secret = "hunter2"
	tests := []struct{ url, shown, reason string }{
		{"redis://u:hunter2@db.example:6379/2", "redis://xxxxx@db.example:6379/2", "a password"},
		{"redis://hunter2@db.example", "redis://xxxxx@db.example", "a password in the place of the user"},
		{"redis://a:1?addr=b:2&password=hunter2&username=hunter2", "redis://a:1?addr=b:2", "an account among a sentinel's options"},
		{"redis://u:12?hunter2@localhost", "(malformed)", "cut at the wrong place"},
		{"redis://u:12/hunter2@localhost", "(malformed)", "cut at the wrong place"},
		{"", "RedisURL: ", "none"},
	}
	for _, tt := range tests {
		mode := shardhop.RedisStandalone
		if strings.Contains(tt.url, "addr=") {
			mode = shardhop.RedisSentinel
		}
		cfg := shardhop.Config{RedisURL: tt.url, RedisMode: mode, RedisSentinelMaster: "game"}
		var logged, asJSON strings.Builder
		slog.New(slog.NewTextHandler(&logged, nil)).Info("start", "config", cfg, "pointer", &cfg)
		slog.New(slog.NewJSONHandler(&asJSON, nil)).Info("start", "config", cfg)
		for _, printed := range []string{
			fmt.Sprint(cfg), fmt.Sprintf("%v", &cfg), fmt.Sprintf("%+v", cfg), fmt.Sprintf("%#v", cfg), fmt.Sprintf("%s", cfg),
			fmt.Sprintf("%q", cfg), fmt.Sprintf("%+v", struct{ C shardhop.Config }{cfg}), logged.String(), asJSON.String(),
		} {
			if strings.Contains(printed, secret) {
				t.Errorf("%s: shows the password: %s", tt.reason, printed)
			}
		}
		if text := strings.ReplaceAll(fmt.Sprintf("%+v", cfg), "RedisURL:", "RedisURL: "); !strings.Contains(text, tt.shown) {
			t.Errorf("%s: %s does not show %s", tt.reason, text, tt.shown)
		}
		if cfg.RedisURL != tt.url {
			t.Error("printing changed the configuration")
		}
	}
}

func TestRedisModes(t *testing.T) {
	master := miniredis.RunT(t)
	tests := []struct {
		name   string
		url    string
		mode   shardhop.RedisMode
		master string
	}{
		{"default", "redis://" + master.Addr(), "", ""},
		{"standalone with database", "redis://" + master.Addr() + "/3", shardhop.RedisStandalone, ""},
		{"cluster of one", "redis://" + master.Addr() + "?addr=" + master.Addr(), shardhop.RedisCluster, ""},
		{"sentinel", "redis://" + fakeSentinel(t, "game", master.Addr()), shardhop.RedisSentinel, "game"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client := newRedis(t, tt.url, tt.mode, tt.master)
			if err := client.Set(t.Context(), "key", tt.name, 0).Err(); err != nil {
				t.Fatal(err)
			}
			if got := client.Get(t.Context(), "key").Val(); got != tt.name {
				t.Errorf("got %q, want %q", got, tt.name)
			}
		})
	}
}

// An old server answers these with an error, which go-redis logs at every
// connection.
func TestRedisHandshakeAsksNothingOfOldServers(t *testing.T) {
	rdb := miniredis.RunT(t)
	var mu sync.Mutex
	var seen []string
	rdb.Server().SetPreHook(func(_ *server.Peer, cmd string, args ...string) bool {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, strings.ToUpper(cmd))
		return false
	})
	for _, mode := range []shardhop.RedisMode{shardhop.RedisStandalone, shardhop.RedisCluster} {
		if err := newRedis(t, "redis://"+rdb.Addr(), mode, "").Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if slices.Contains(seen, "CLIENT") {
		t.Errorf("handshake sent a CLIENT command: %v", seen)
	}
}

// The promise is a second; go-redis's own defaults need between five seconds and
// half a minute, so the slack hides nothing.
func TestRedisGoneIsToldWithinASecond(t *testing.T) {
	const promised, slack = time.Second, time.Second
	silent := silentServer(t)
	refused := refusedAddr(t)
	tests := []struct {
		name   string
		url    string
		mode   shardhop.RedisMode
		master string
	}{
		{"silent server", "redis://" + silent, shardhop.RedisStandalone, ""},
		{"silent cluster", "redis://" + silent, shardhop.RedisCluster, ""},
		{"silent sentinel", "redis://" + silent, shardhop.RedisSentinel, "game"},
		{"silent master", "redis://" + fakeSentinel(t, "game", silent), shardhop.RedisSentinel, "game"},
		{"refused", "redis://" + refused, shardhop.RedisStandalone, ""},
		{"refused cluster", "redis://" + refused, shardhop.RedisCluster, ""},
		{"refused sentinel", "redis://" + refused, shardhop.RedisSentinel, "game"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client := newRedis(t, tt.url, tt.mode, tt.master)
			calls := map[string]func() error{
				"command": func() error { return client.Get(t.Context(), "key").Err() },
				"pipeline": func() error {
					_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
						return p.Get(t.Context(), "key").Err()
					})
					return err
				},
			}
			for name, call := range calls {
				start := time.Now()
				err := call()
				if took := time.Since(start); took > promised+slack {
					t.Errorf("%s took %v", name, took)
				}
				if err == nil || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: error %v, want one that does not blame the caller's context", name, err)
				}
			}
		})
	}
}

func TestRedisDeadlineOfTheCallerWins(t *testing.T) {
	client := newRedis(t, "redis://"+silentServer(t), "", "")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := client.Get(ctx, "key").Err()
	if ctx.Err() == nil {
		t.Errorf("returned before the caller's deadline: %v", err)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) && strings.Contains(err.Error(), "no answer within") {
		t.Errorf("error %v, want the caller's own deadline", err)
	}
}

func TestRedisURLOptionsWin(t *testing.T) {
	client := newRedis(t, "redis://localhost:1?dial_timeout=7s&read_timeout=8s&write_timeout=9s&max_retries=4&max_retry_backoff=3s", "", "")
	opts := client.(*redis.Client).Options()
	if opts.DialTimeout != 7*time.Second || opts.ReadTimeout != 8*time.Second || opts.WriteTimeout != 9*time.Second ||
		opts.MaxRetries != 4 || opts.MaxRetryBackoff != 3*time.Second {
		t.Errorf("options of the URL were overridden: %+v", opts)
	}
}

func newRedis(t *testing.T, url string, mode shardhop.RedisMode, master string) redis.UniversalClient {
	t.Helper()
	client, err := shardhop.NewRedis(url, mode, master)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// fakeSentinel answers the two questions that a client asks of a sentinel.
func fakeSentinel(t *testing.T, name, master string) string {
	t.Helper()
	srv, err := server.NewServer("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	host, port, _ := net.SplitHostPort(master)
	answer := func(peer *server.Peer, _ string, args []string) {
		switch {
		case strings.EqualFold(args[0], "get-master-addr-by-name") && args[1] == name:
			peer.WriteLen(2)
			peer.WriteBulk(host)
			peer.WriteBulk(port)
		default:
			peer.WriteLen(0)
		}
	}
	if err := srv.Register("SENTINEL", answer); err != nil {
		t.Fatal(err)
	}
	return srv.Addr().String()
}

// silentServer accepts every connection and never says a word.
func silentServer(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var held []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			held = append(held, conn)
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		<-done
		for _, conn := range held {
			conn.Close()
		}
	})
	return ln.Addr().String()
}

// refusedAddr is a port on which nothing listens.
func refusedAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}
