package faultproxy_test

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
)

const (
	soon  = 5 * time.Second        // bounds what must happen
	quiet = 100 * time.Millisecond // how long nothing is watched for
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is an upstream that sends back what it gets.
type echo struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu   sync.Mutex // guards what follows; taken by the connections' goroutines
	open int
	got  []byte
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{listener: listener}
	e.wg.Go(e.accept)
	t.Cleanup(e.wg.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	return e
}

func (e *echo) addr() string { return e.listener.Addr().String() }

func (e *echo) accept() {
	for {
		conn, err := e.listener.Accept()
		if err != nil {
			return
		}
		e.wg.Go(func() { e.serve(conn) })
	}
}

func (e *echo) serve(conn net.Conn) {
	e.count(1, nil)
	defer e.count(-1, nil)
	defer func() { _ = conn.Close() }()
	buf := make([]byte, 1024)
	for {
		n, err := conn.Read(buf)
		e.count(0, buf[:n])
		if err != nil {
			return
		}
		_, _ = conn.Write(buf[:n])
	}
}

func (e *echo) count(open int, got []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open += open
	e.got = append(e.got, got...)
}

func (e *echo) connections() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open
}

func (e *echo) received() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return string(e.got)
}

func dial(t *testing.T, p *faultproxy.Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

// expect reads exactly text.
func expect(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(soon))
	buf := make([]byte, len(text))
	if _, err := io.ReadFull(conn, buf); err != nil || string(buf) != text {
		t.Fatalf("read %q, %v, want %q", buf, err, text)
	}
}

// expectSilence reads nothing while the connection stays open.
func expectSilence(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(quiet))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %d bytes, %v, want silence", n, err)
	}
}

// expectEnd reads nothing but the end of the connection.
func expectEnd(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = readEnd(t, conn)
}

// readEnd is expectEnd and returns how the connection ended.
func readEnd(t *testing.T, conn net.Conn) error {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(soon))
	n, err := conn.Read(make([]byte, 1))
	if n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %d bytes, %v, want the end", n, err)
	}
	return err
}

// linked returns a connection that has echoed once, so that both of its
// halves stand.
func linked(t *testing.T, p *faultproxy.Proxy) net.Conn {
	t.Helper()
	conn := dial(t, p)
	send(t, conn, "hello")
	expect(t, conn, "hello")
	return conn
}

func awaitFired(t *testing.T, fired <-chan struct{}) {
	t.Helper()
	lab.Eventually(t, soon, "the trigger fires", func() bool {
		select {
		case <-fired:
			return true
		default:
			return false
		}
	})
}
