package scriptserver

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
)

// Server is a scripted MySQL server on a loopback port. Its methods are safe
// for use by several goroutines.
type Server struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu      sync.Mutex
	conns   []*conn // all that there were; the id is the index plus one
	answers []scripted
	seen    []string // statements, in the order they came
	closed  bool
}

// scripted is the answer to the statements in which match stands.
type scripted struct {
	match  string
	answer Answer
}

// New starts a server, which ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{listener: l}
	s.serving.Go(s.accept)
	t.Cleanup(s.Close)
	return s
}

// Addr is where the server listens, host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// DSN is a data source name for the server.
func (s *Server) DSN() string { return "app:pw@tcp(" + s.Addr() + ")/game" }

// Answer has the server answer so to every statement, or execution of a
// prepared one, in which match stands. What was set last counts.
func (s *Server) Answer(match string, a Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, scripted{match, a})
}

// Got counts the statements in which match stands.
func (s *Server) Got(match string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, statement := range s.seen {
		if strings.Contains(statement, match) {
			n++
		}
	}
	return n
}

// Refuse takes no new connections any more, as a server that shuts down.
func (s *Server) Refuse() { _ = s.listener.Close() }

// Close ends the listener and all connections, and waits for their goroutines.
func (s *Server) Close() {
	_ = s.listener.Close() // also of a second call
	s.mu.Lock()
	s.closed = true
	for _, c := range s.conns {
		_ = c.Close() // many are closed already
	}
	s.mu.Unlock()
	s.serving.Wait()
}

func (s *Server) accept() {
	for {
		nc, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.admit(nc)
	}
}

func (s *Server) admit(nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = nc.Close() // nobody has it yet
		return
	}
	c := &conn{Conn: nc, server: s, id: uint32(len(s.conns) + 1)}
	s.conns = append(s.conns, c)
	s.serving.Go(c.serve)
}

// got notes a statement of a connection and returns the answer to it.
func (s *Server) got(id uint32, statement string) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, statement)
	for i := len(s.answers) - 1; i >= 0; i-- {
		if strings.Contains(statement, s.answers[i].match) {
			return s.answers[i].answer
		}
	}
	return unscripted(id, statement)
}

// unscripted is the answer to what no answer was set for. Galera's variables and
// MySQL's name of a server are unknown to it.
func unscripted(id uint32, statement string) Answer {
	const unknownVariable = 1193
	switch {
	case strings.Contains(statement, "@@global.wsrep_on"):
		return Err(unknownVariable, "Unknown system variable 'wsrep_on'")
	case strings.Contains(statement, "@@global.server_uuid"):
		return Err(unknownVariable, "Unknown system variable 'server_uuid'")
	case strings.Contains(statement, "@@completion_type"):
		return Rows([]string{"read_only", "thread", "life", "commits", "packet"}, []string{"0", fmt.Sprint(id), "scripted", "1NO_CHAIN", "16777216"})
	case strings.Contains(statement, "@@global.read_only, CONNECTION_ID()"):
		return Rows([]string{"read_only", "thread", "life"}, []string{"0", fmt.Sprint(id), "scripted"})
	case statement == "SELECT 1":
		return Rows([]string{"1"}, []string{"1"})
	}
	return OK()
}
