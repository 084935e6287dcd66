package lab

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// answerTimeout bounds one look at whether a server answers.
const answerTimeout = time.Second

// RedisServer is a redis-server of its own. It keeps nothing on disk, so Stop
// and Kill lose its data; WithArgs("--appendonly", "yes") keeps it.
type RedisServer struct {
	*Process

	tlsAddr string // host:port for TLS; "" without
}

// Redis starts a redis-server that ends with t.
func Redis(t testing.TB, opts ...Option) *RedisServer {
	t.Helper()
	s := newRedis(t, collect(opts).args...)
	s.Start()
	return s
}

// newRedis returns a redis-server that is not started yet.
func newRedis(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	return newRedisWith(t, options{args: args})
}

// newRedisWith is newRedis, with TLS on a port beside the plain one if o has a
// certificate.
func newRedisWith(t testing.TB, o options) *RedisServer {
	t.Helper()
	var tlsArgs []string
	tlsAddr := ""
	if o.certificate != nil {
		port := FreePort(t)
		tlsArgs, tlsAddr = o.certificate.arguments(port), loopback(port)
	}
	path := program(t, "redis-server")
	port := FreePort(t)
	folder := workFolder(t, "redis")
	argv := slices.Concat([]string{
		path,
		"--bind", "127.0.0.1",
		"--port", strconv.Itoa(port),
		"--dir", folder,
		"--save", "",
		"--appendonly", "no",
	}, tlsArgs, o.args)
	addr := loopback(port)
	process := newProcess(t, spec{
		name:   "redis-server",
		addr:   addr,
		folder: folder,
		argv:   func() ([]string, error) { return argv, nil },
		ready:  func() error { return pingRedis(addr) },
	})
	return &RedisServer{Process: process, tlsAddr: tlsAddr}
}

// TLSAddr returns the server's host:port for TLS; "" if it takes none.
func (s *RedisServer) TLSAddr() string { return s.tlsAddr }

// peerAddr is the host:port under which servers tell each other of this one.
func (s *RedisServer) peerAddr() string { return cmp.Or(s.tlsAddr, s.Addr()) }

// startRedis starts servers at the same time.
func startRedis(servers []*RedisServer) {
	for _, s := range servers {
		s.launch()
	}
	for _, s := range servers {
		s.awaitReady()
	}
}

// URL returns the server's address as redis://host:port.
func (s *RedisServer) URL() string { return "redis://" + s.Addr() }

// listURL puts the addresses of several servers into one URL.
func listURL(servers []*RedisServer) string {
	url := "redis://"
	if servers[0].tlsAddr != "" {
		url = "rediss://"
	}
	url += servers[0].peerAddr()
	for i, server := range servers[1:] {
		url += string("?&"[min(i, 1)]) + "addr=" + server.peerAddr()
	}
	return url
}

// Client returns a new client of the server, which is closed when the test
// ends. Unlike a client with default options it obeys its context's deadline
// while it waits for an answer.
func (s *RedisServer) Client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), ContextTimeoutEnabled: true})
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// pingRedis asks once, without the retries of a client. A server that wants a
// password is up as well.
func pingRedis(addr string) error {
	conn, err := (&net.Dialer{Timeout: answerTimeout}).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(answer, "+PONG") && !strings.HasPrefix(answer, "-NOAUTH") {
		return fmt.Errorf("redis answers %q", strings.TrimSpace(answer))
	}
	return nil
}
