package lab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// MasterName is what the sentinels call the master.
	MasterName = "game"

	replicas  = 2
	sentinels = 3

	// promotion bounds a failover; it takes two to four seconds.
	promotion = 30 * time.Second
)

// SentinelRedis is a master with two replicas and three sentinels, which
// promote a replica when the master has been silent for a second. Its methods
// are for one goroutine at a time, but for Client, MasterAddr and URL.
type SentinelRedis struct {
	t           testing.TB
	certificate *certificate   // nil: no TLS
	servers     []*RedisServer // the first is the first master
	sentinels   []*RedisServer
}

// RedisSentinel starts a master, its replicas and their sentinels, which end
// with t. Arguments of options are for master and replicas.
func RedisSentinel(t testing.TB, opts ...Option) *SentinelRedis {
	t.Helper()
	o := collect(opts)
	s := &SentinelRedis{t: t, certificate: o.certificate}
	o.args = slices.Concat([]string{"--repl-diskless-sync-delay", "0"}, o.args)
	master := newRedisWith(t, o)
	s.servers = []*RedisServer{master}
	host, port, _ := net.SplitHostPort(master.peerAddr())
	o.args = slices.Concat(o.args, []string{"--replicaof", host, port})
	for range replicas {
		s.servers = append(s.servers, newRedisWith(t, o))
	}
	startRedis(s.servers)
	Eventually(t, promotion, "the replicas follow", func() bool { return s.following() == replicas })
	s.watch()
	return s
}

// watch starts the sentinels. They are told of each other and of the replicas,
// and so need not wait for the rounds in which they would learn of them.
func (s *SentinelRedis) watch() {
	s.t.Helper()
	ids := make([]string, sentinels)
	for i := range ids {
		var id [20]byte
		_, _ = rand.Read(id[:])
		ids[i] = hex.EncodeToString(id[:])
		s.sentinels = append(s.sentinels, newSentinel(s.t, s.certificate != nil))
	}
	for i, sentinel := range s.sentinels {
		if err := os.WriteFile(sentinelFile(sentinel), []byte(s.config(i, ids)), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	startRedis(s.sentinels)
	Eventually(s.t, promotion, "every sentinel sees all the others", func() bool {
		return !slices.ContainsFunc(s.sentinels, func(sentinel *RedisServer) bool { return !s.watches(sentinel) })
	})
}

// newSentinel returns a sentinel that is not started and has no file yet.
func newSentinel(t testing.TB, withTLS bool) *RedisServer {
	t.Helper()
	path := program(t, "redis-server")
	addr := FreeAddr(t)
	folder := workFolder(t, "sentinel")
	s := &RedisServer{}
	if withTLS {
		s.tlsAddr = FreeAddr(t)
	}
	argv := func() ([]string, error) { return []string{path, sentinelFile(s), "--sentinel"}, nil }
	s.Process = newProcess(t, spec{
		name: "redis-sentinel", addr: addr, folder: folder, argv: argv,
		ready: func() error { return pingRedis(addr) },
	})
	return s
}

func sentinelFile(s *RedisServer) string { return filepath.Join(s.spec.folder, "sentinel.conf") }

// config is the file of sentinel i, which the sentinel itself rewrites.
func (s *SentinelRedis) config(i int, ids []string) string {
	spaced := func(addr string) string { return strings.Replace(addr, ":", " ", 1) }
	_, port, _ := net.SplitHostPort(s.sentinels[i].Addr())
	lines := []string{
		"bind 127.0.0.1",
		"port " + port,
		"dir " + s.sentinels[i].spec.folder,
		"sentinel myid " + ids[i],
		fmt.Sprintf("sentinel monitor %s %s %d", MasterName, spaced(s.servers[0].peerAddr()), sentinels/2+1),
		fmt.Sprintf("sentinel down-after-milliseconds %s 1000", MasterName),
		fmt.Sprintf("sentinel failover-timeout %s 2000", MasterName),
		fmt.Sprintf("sentinel parallel-syncs %s %d", MasterName, replicas),
	}
	if s.certificate != nil {
		lines = append(lines, s.tlsLines(i)...)
	}
	for _, replica := range s.servers[1:] {
		lines = append(lines, fmt.Sprintf("sentinel known-replica %s %s", MasterName, spaced(replica.peerAddr())))
	}
	for j, peer := range s.sentinels {
		if j != i {
			lines = append(lines, fmt.Sprintf("sentinel known-sentinel %s %s %s", MasterName, spaced(peer.peerAddr()), ids[j]))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// watches reports whether sentinel could fail over now: it reaches its peers
// and both replicas.
func (s *SentinelRedis) watches(sentinel *RedisServer) bool {
	client := redis.NewSentinelClient(&redis.Options{Addr: sentinel.Addr(), ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()
	ctx := s.t.Context()
	// On a busy machine a sentinel that did not get to run for two seconds
	// distrusts its clock, and does nothing for half a minute.
	quick := redis.NewCmd(ctx, "SENTINEL", "DEBUG",
		"tilt-trigger", 30000, "info-period", 500, "ask-period", 200, "publish-period", 500)
	if err := client.Process(ctx, quick); err != nil {
		return false
	}
	if err := client.CkQuorum(ctx, MasterName).Err(); err != nil {
		return false
	}
	found, err := client.Replicas(ctx, MasterName).Result()
	up := 0
	for _, replica := range found {
		if replica["flags"] == "slave" && replica["master-link-status"] == "ok" {
			up++
		}
	}
	return err == nil && up == replicas
}

// following counts the replicas that have the master's data.
func (s *SentinelRedis) following() int {
	n := 0
	for _, server := range s.servers {
		info, err := s.info(server)
		if err == nil && hasLine(info, "role:slave") && hasLine(info, "master_link_status:up") {
			n++
		}
	}
	return n
}

func (s *SentinelRedis) info(server *RedisServer) (string, error) {
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(s.t.Context(), answerTimeout)
	defer cancel()
	return client.Info(ctx, "replication").Result()
}

// Master returns the server that is the master by its own word and the
// sentinels'; nil while there is none.
func (s *SentinelRedis) Master() *RedisServer {
	addr := s.MasterAddr()
	for _, server := range s.servers {
		if server.peerAddr() != addr || server.PID() == 0 {
			continue
		}
		if info, err := s.info(server); err == nil && hasLine(info, "role:master") {
			return server
		}
	}
	return nil
}

// MasterAddr returns the master's host:port as the first sentinel knows it: the
// one for TLS, if there is any.
func (s *SentinelRedis) MasterAddr() string {
	s.t.Helper()
	client := redis.NewSentinelClient(&redis.Options{Addr: s.sentinels[0].Addr(), ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()
	addr, err := client.GetMasterAddrByName(s.t.Context(), MasterName).Result()
	if err != nil || len(addr) != 2 {
		s.t.Fatalf("lab: sentinel tells no master: %v, %v", addr, err)
	}
	return net.JoinHostPort(addr[0], addr[1])
}

// FailOver lets end kill or freeze the master and returns when another has been
// promoted. What the replicas have not received by then is lost: let nothing
// write and use [SentinelRedis.AwaitReplicas] before, or reckon with it.
func (s *SentinelRedis) FailOver(end func(master *RedisServer)) {
	s.t.Helper()
	master := s.mustMaster()
	end(master)
	s.awaitPromotion(master)
}

// FailOverForgetting cuts the replicas off, runs write, kills the master and
// returns when another has been promoted, which knows nothing of write.
func (s *SentinelRedis) FailOverForgetting(write func()) {
	s.t.Helper()
	master := s.mustMaster()
	for _, replica := range s.live(master) {
		replica.Freeze()
	}
	// What a frozen replica has in its socket it would still read when it
	// thaws.
	if err := master.Client().ClientKillByFilter(s.t.Context(), "TYPE", "replica").Err(); err != nil {
		s.t.Fatal(err)
	}
	write()
	master.Kill()
	for _, replica := range s.live(master) {
		replica.Thaw()
	}
	s.awaitPromotion(master)
}

// AwaitReplicas returns when all live replicas have what was written so far
// through any client.
func (s *SentinelRedis) AwaitReplicas() {
	s.t.Helper()
	master := s.mustMaster()
	want := len(s.live(master))
	client := master.Client()
	// WAIT counts what its own connection wrote, so write on it.
	got, err := client.Set(s.t.Context(), "lab:wait", strconv.Itoa(want), time.Minute).Result()
	if err != nil {
		s.t.Fatalf("lab: %s, %v", got, err)
	}
	Eventually(s.t, promotion, "all replicas have everything", func() bool {
		n, err := client.Wait(s.t.Context(), want, time.Second).Result()
		return err == nil && int(n) == want
	})
}

func (s *SentinelRedis) mustMaster() *RedisServer {
	s.t.Helper()
	var master *RedisServer
	Eventually(s.t, promotion, "there is a master", func() bool {
		master = s.Master()
		return master != nil
	})
	return master
}

// live returns the servers that run, but for master.
func (s *SentinelRedis) live(master *RedisServer) []*RedisServer {
	var others []*RedisServer
	for _, server := range s.servers {
		if server != master && server.PID() != 0 {
			others = append(others, server)
		}
	}
	return others
}

func (s *SentinelRedis) awaitPromotion(old *RedisServer) {
	s.t.Helper()
	Eventually(s.t, promotion, "the sentinels promote a replica", func() bool {
		master := s.Master()
		return master != nil && master != old
	})
}

// Sentinels returns the sentinels, to kill or to freeze.
func (s *SentinelRedis) Sentinels() []*RedisServer { return slices.Clone(s.sentinels) }

// URL returns the sentinels' addresses in the form redis://a?addr=b&addr=c, with
// rediss and the TLS ports if there are any.
func (s *SentinelRedis) URL() string { return listURL(s.sentinels) }

func (s *SentinelRedis) addrs() []string {
	addrs := make([]string, len(s.sentinels))
	for i, sentinel := range s.sentinels {
		addrs[i] = sentinel.Addr()
	}
	return addrs
}

// Options returns what a client needs to follow the master.
func (s *SentinelRedis) Options() *redis.FailoverOptions {
	return &redis.FailoverOptions{MasterName: MasterName, SentinelAddrs: s.addrs(), ContextTimeoutEnabled: true}
}

// Client returns a new client that follows the master, which is closed when the
// test ends.
func (s *SentinelRedis) Client() *redis.Client {
	client := redis.NewFailoverClient(s.Options())
	s.t.Cleanup(func() { _ = client.Close() })
	return client
}

// hasLine reports whether one of the lines of an INFO is line.
func hasLine(info, line string) bool {
	return slices.Contains(strings.Fields(info), line)
}
