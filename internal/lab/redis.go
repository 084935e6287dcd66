package lab

import (
	"bufio"
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
	}, args)
	addr := loopback(port)
	return &RedisServer{newProcess(t, spec{
		name:   "redis-server",
		addr:   addr,
		folder: folder,
		argv:   func() ([]string, error) { return argv, nil },
		ready:  func() error { return pingRedis(addr) },
	})}
}

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
