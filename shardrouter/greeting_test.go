package shardrouter

import (
	"bytes"
	"context"
	"net"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// FuzzGreeting lets something that is no MySQL server answer the driver: it may
// fail, and must not panic.
func FuzzGreeting(f *testing.F) {
	greeting := append([]byte("\x0a10.11.6-MariaDB\x00"), make([]byte, afterVersion)...)
	for _, body := range [][]byte{
		greeting, greeting[:len(greeting)-1], greeting[:20], {10}, {10, 0, 0},
		[]byte("\xff\x10\x04Too many connections"), []byte("\xff\x10\x04#080"), []byte("\xff\x10\x04"),
	} {
		f.Add(append([]byte{byte(len(body)), 0, 0, 0}, body...))
	}
	f.Add([]byte("220 mail.example.com ESMTP\r\n"))
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		packet, err := readGreeting(bytes.NewReader(data))
		if err != nil {
			return
		}
		client, server := net.Pipe()
		go func() {
			_, _ = server.Write(packet)
			_ = server.Close()
		}()
		cfg := mysql.NewConfig()
		cfg.User, cfg.Passwd, cfg.Logger = "app", "secret", &mysql.NopLogger{}
		cfg.DialFunc = func(context.Context, string, string) (net.Conn, error) { return client, nil }
		connector, err := mysql.NewConnector(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if conn, err := connector.Connect(t.Context()); err == nil {
			_ = conn.Close()
			t.Fatal("a greeting alone made a connection")
		}
	})
}
