package shardrouter_test

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/shardrouter"
)

const (
	protocol41       = 1 << 9
	clientSSL        = 1 << 11
	secureConnection = 1 << 15
	sslRequestLength = 32
)

// greeting is a server's first packet, with these capabilities.
func greeting(capabilities uint16) []byte {
	body := append([]byte{10}, "8.0.0\x00\x01\x00\x00\x00saltsalt\x00"...)
	body = binary.LittleEndian.AppendUint16(body, capabilities)
	body = append(body, "\x2d\x02\x00\x08\x00\x15"+strings.Repeat("\x00", 10)+"saltsaltsalt\x00mysql_native_password\x00"...)
	return append([]byte{byte(len(body)), 0, 0, 0}, body...)
}

// firstPacketLength greets one connection, returns the length of what the
// client says first, and hangs up.
func firstPacketLength(l net.Listener, capabilities uint16) (int, error) {
	c, err := l.Accept()
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write(greeting(capabilities)); err != nil {
		return 0, err
	}
	header := make([]byte, 4)
	_, err = io.ReadFull(c, header)
	return int(header[0]), err
}

// TestParseDSNPreferredTLS holds that a connection that had to do without TLS
// does not turn it off for the ones that follow.
func TestParseDSNPreferredTLS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	nodes, err := parse(shardrouter.DSN("app:hunter2@tcp(" + l.Addr().String() + ")/game?tls=preferred"))
	if err != nil {
		t.Fatal(err)
	}
	connector, err := mysql.NewConnector(nodes[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		reason       string
		capabilities uint16
		wantTLS      bool
	}{
		{"a server without TLS", protocol41 | secureConnection, false},
		{"a server with TLS", protocol41 | secureConnection | clientSSL, true},
	} {
		hungUp := make(chan error, 1)
		go func() {
			_, err := connector.Connect(t.Context())
			hungUp <- err
		}()
		n, err := firstPacketLength(l, tt.capabilities)
		if err != nil {
			t.Fatalf("%s: %v", tt.reason, err)
		}
		if askedTLS := n == sslRequestLength; askedTLS != tt.wantTLS {
			t.Errorf("%s: the client's first packet has %d bytes, asked for TLS: %v, want %v", tt.reason, n, askedTLS, tt.wantTLS)
		}
		if <-hungUp == nil {
			t.Errorf("%s: connected to a server that hung up", tt.reason)
		}
	}
}
