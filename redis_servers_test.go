package shardhop_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardhop/shardhop"
	"github.com/shardhop/shardhop/internal/lab"
)

// Promised: an answer within a second while Redis is silent, and everybody
// back two seconds after it is.
const (
	toldWithin = time.Second
	backWithin = 2 * time.Second
	busy       = time.Second // what a busy machine may add
)

func TestFrozenRedisInEveryMode(t *testing.T) {
	t.Parallel()
	cluster := lab.RedisCluster(t, 3, lab.WithArgs("--cluster-node-timeout", "30000"))
	set := lab.RedisSentinel(t)
	single := lab.Redis(t)
	tests := []struct {
		name string
		vars map[string]string
		// silent are the servers to freeze, without which nobody is served.
		silent []*lab.RedisServer
	}{
		{"standalone", map[string]string{"REDIS_URL": single.URL()}, []*lab.RedisServer{single}},
		{"TLS", map[string]string{"REDIS_URL": trusted.URL()}, []*lab.RedisServer{trusted.RedisServer}},
		{"cluster", map[string]string{"REDIS_URL": cluster.URL(), "REDIS_MODE": "cluster"}, cluster.Nodes()},
		{"all behind Sentinel", map[string]string{
			"REDIS_URL": set.URL(), "REDIS_MODE": "sentinel", "REDIS_SENTINEL_MASTER": lab.MasterName,
		}, append(set.Sentinels(), set.Master())},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			app, _ := application(t, tt.vars)
			p := loggedIn(t, app)
			for _, server := range tt.silent {
				server.Freeze()
			}
			for i := range 3 { // a warm connection, a new one, and one after that
				began := time.Now()
				answer := p.do("/")
				if took := time.Since(began); answer.status != http.StatusServiceUnavailable || took > toldWithin+busy {
					t.Errorf("request %d: %d after %v", i, answer.status, took)
				}
			}
			for _, server := range tt.silent {
				server.Thaw()
			}
			lab.Eventually(t, backWithin+busy, "the player is back", func() bool { return p.do("/").isAda() })
		})
	}
}

// A frozen member of a cluster is a silent server for the players whose
// sessions it holds, and none for the others.
func TestFrozenMemberOfACluster(t *testing.T) {
	t.Parallel()
	cluster := lab.RedisCluster(t, 3, lab.WithArgs("--cluster-node-timeout", "30000"))
	vars := map[string]string{"REDIS_URL": cluster.URL(), "REDIS_MODE": "cluster"}
	app, _ := application(t, vars)
	players := make([]*player, 12)
	for i := range players {
		players[i] = loggedIn(t, app)
	}
	cluster.Nodes()[0].Freeze()
	served, refused := 0, 0
	for _, p := range players {
		began := time.Now()
		answer := p.do("/")
		switch took := time.Since(began); {
		case took > toldWithin+busy:
			t.Errorf("%d after %v", answer.status, took)
		case answer.isAda():
			served++
		case answer.status == http.StatusServiceUnavailable:
			refused++
		default:
			t.Errorf("%d %q", answer.status, answer.body)
		}
	}
	if served == 0 || refused == 0 {
		t.Errorf("%d were served and %d refused", served, refused)
	}
	cluster.Nodes()[0].Thaw()
	for _, p := range players {
		lab.Eventually(t, backWithin+busy, "the player is back", func() bool { return p.do("/").isAda() })
	}
}

// A sentinel that is silent costs nobody anything: others know the master, and
// connections to it are open.
func TestFrozenSentinel(t *testing.T) {
	t.Parallel()
	set := lab.RedisSentinel(t)
	app, _ := application(t, map[string]string{
		"REDIS_URL": set.URL(), "REDIS_MODE": "sentinel", "REDIS_SENTINEL_MASTER": lab.MasterName,
	})
	p := loggedIn(t, app)
	set.Sentinels()[0].Freeze()
	if answer := p.do("/"); !answer.isAda() {
		t.Errorf("%d %q", answer.status, answer.body)
	}
}

func TestCertificateOfAStranger(t *testing.T) {
	stranger := lab.RedisTLS(t)
	ping := func(url string) error { return newRedis(t, url, "", "").Ping(t.Context()).Err() }
	var err error
	lab.Eventually(t, 20*time.Second, "a certificate that nobody vouches for is told of", func() bool {
		err = ping(stranger.URL())
		return err == nil || strings.Contains(err.Error(), "certificate")
	})
	if err == nil {
		t.Error("a certificate that nobody vouches for is taken")
	}
	lab.Eventually(t, 20*time.Second, "a trusted certificate is taken", func() bool { return ping(trusted.URL()) == nil })
}

// Every server of a set is reached by TLS: members of a cluster that only other
// members name, sentinels, and the master that they name, before and after a
// failover.
func TestTLSToEveryServerOfASet(t *testing.T) {
	t.Parallel()
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		cluster := lab.RedisCluster(t, 3, lab.WithCertificateOf(trusted))
		first, _, _ := strings.Cut(cluster.URL(), "?") // the others are found
		app, _ := application(t, map[string]string{"REDIS_URL": first, "REDIS_MODE": "cluster"})
		for range 12 {
			if answer := loggedIn(t, app).do("/"); !answer.isAda() {
				t.Errorf("%d %q", answer.status, answer.body)
			}
		}
		for _, node := range cluster.Nodes() {
			wantOnlyTLS(t, node)
			if n := node.Client().DBSize(t.Context()).Val(); n == 0 {
				t.Errorf("node %s holds no session", node.Addr())
			}
		}
	})
	t.Run("sentinel", func(t *testing.T) {
		t.Parallel()
		set := lab.RedisSentinel(t, lab.WithCertificateOf(trusted))
		app, _ := application(t, map[string]string{
			"REDIS_URL": set.URL(), "REDIS_MODE": "sentinel", "REDIS_SENTINEL_MASTER": lab.MasterName,
		})
		p := loggedIn(t, app)
		if answer := p.do("/"); !answer.isAda() {
			t.Errorf("%d %q", answer.status, answer.body)
		}
		wantOnlyTLS(t, set.Master())
		set.AwaitReplicas()
		set.FailOver((*lab.RedisServer).Kill)
		lab.Eventually(t, 10*time.Second, "the player is back", func() bool { return p.do("/").isAda() })
		wantOnlyTLS(t, set.Master())
	})
}

// wantOnlyTLS checks that the clients of a server came by its TLS port, but for
// those that the test itself opens.
func wantOnlyTLS(t *testing.T, server *lab.RedisServer) {
	t.Helper()
	list, err := server.Client().ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	byTLS := 0
	for line := range strings.Lines(list) {
		switch {
		case strings.Contains(line, "laddr="+server.TLSAddr()+" "):
			byTLS++
		case strings.Contains(line, "cmd=evalsha") || strings.Contains(line, "cmd=hgetall"):
			t.Errorf("a session came in the clear: %s", line)
		}
	}
	if byTLS == 0 {
		t.Errorf("nobody is connected to %s by TLS:\n%s", server.Addr(), list)
	}
}

// Redis 7.0, which Debian 12 has, knows no CLIENT SETINFO and no maintenance
// notifications; one before 6.0 knows no HELLO either.
func TestOldServersStartSilently(t *testing.T) {
	ancient := lab.WithArgs("--rename-command", "HELLO", "", "--rename-command", "CLIENT", "")
	tests := []struct {
		name string
		vars map[string]string
	}{
		{"7.0", map[string]string{"REDIS_URL": lab.Redis(t).URL()}},
		{"before 6.0", map[string]string{"REDIS_URL": lab.Redis(t, ancient).URL()}},
		{"before 6.0 in a cluster", map[string]string{"REDIS_URL": lab.RedisCluster(t, 1, ancient).URL(), "REDIS_MODE": "cluster"}},
		{"before 6.0 behind a sentinel", map[string]string{
			"REDIS_URL":  "redis://" + fakeSentinel(t, "game", lab.Redis(t, ancient).Addr()),
			"REDIS_MODE": "sentinel", "REDIS_SENTINEL_MASTER": "game",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clientLog.reset()
			app, log := application(t, tt.vars)
			if answer := loggedIn(t, app).do("/"); !answer.isAda() {
				t.Errorf("%d %q", answer.status, answer.body)
			}
			for _, line := range append(clientLog.reset(), log.reset()...) {
				if !strings.HasPrefix(line, "sentinel: ") { // it tells which master it has found
					t.Errorf("logged: %s", line)
				}
			}
		})
	}
}

// application is the library on the Redis of vars, and what it logs.
func application(t *testing.T, vars map[string]string) (http.Handler, *lineLog) {
	t.Helper()
	vars["SHARDS"], vars["SHARD_SERVER_1_DSN"] = "server_1", downDSN
	cfg, err := shardhop.ConfigFrom(vars)
	if err != nil {
		t.Fatal(err)
	}
	log := new(lineLog)
	cfg.Sessions.Logger = slog.New(slog.NewTextHandler(log, nil))
	hop := open(t, cfg)
	mux := http.NewServeMux()
	mux.HandleFunc("/login", func(_ http.ResponseWriter, r *http.Request) { hop.Sessions.Put(r.Context(), "name", "Ada") })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, hop.Sessions.GetString(r.Context(), "name"))
	})
	return hop.Sessions.LoadAndSave(mux), log
}

// loggedIn is a player with a session.
func loggedIn(t *testing.T, app http.Handler) *player {
	t.Helper()
	p := newPlayer(t, app)
	lab.Eventually(t, backWithin+busy, "the player is logged in", func() bool {
		return p.do("/login").status == http.StatusOK
	})
	return p
}

// isAda reports whether an answer is for the player who logged in.
func (r reply) isAda() bool { return r.status == http.StatusOK && r.body == "Ada" }

// lineLog collects lines. It is safe for use by several goroutines.
type lineLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *lineLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(p))
	return len(p), nil
}

// Printf makes it a logger of go-redis.
func (l *lineLog) Printf(_ context.Context, format string, args ...any) {
	_, _ = fmt.Fprintf(l, format, args...)
}

// reset returns the lines so far and forgets them.
func (l *lineLog) reset() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}
