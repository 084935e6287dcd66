package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The ports to choose from when the kernel does not tell its own range.
const (
	firstPort            = 10000
	defaultFirstOutgoing = 32768
)

// FreePort returns a loopback port that nobody listens on and that no other
// test gets before t ends.
func FreePort(t testing.TB) int {
	t.Helper()
	folder := filepath.Join(home(t), "ports")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	end := firstOutgoingPort()
	for range 1000 {
		port := firstPort + rand.IntN(end-firstPort)
		if reservePort(t, folder, port) {
			return port
		}
	}
	t.Fatal("lab: no free port found")
	return 0
}

// firstOutgoingPort returns the lowest port that the kernel may give to an
// outgoing connection.
func firstOutgoingPort() int {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return defaultFirstOutgoing
	}
	return parseFirstOutgoingPort(string(text))
}

func parseFirstOutgoingPort(text string) int {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return defaultFirstOutgoing
	}
	low, err := strconv.Atoi(fields[0])
	if err != nil || low < firstPort+1000 {
		return defaultFirstOutgoing
	}
	return low
}

// reservePort locks port for this test and reports whether it is free.
func reservePort(t testing.TB, folder string, port int) bool {
	lock, err := os.OpenFile(filepath.Join(folder, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil || !canListen(t.Context(), port) {
		_ = lock.Close()
		return false
	}
	t.Cleanup(func() { _ = lock.Close() })
	return true
}

func canListen(ctx context.Context, port int) bool {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", loopback(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// FreeAddr returns the host:port of a [FreePort].
func FreeAddr(t testing.TB) string {
	t.Helper()
	return loopback(FreePort(t))
}
