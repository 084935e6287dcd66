package shardrouter_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// The look at the socket before each statement takes no living connection for a
// dead one, and no dead one for living, on every kind of network.
func TestPeek(t *testing.T) {
	cert, key := certificate(t)
	tls := lab.MariaDB(t, lab.WithArgs("--ssl-cert="+cert, "--ssl-key="+key))
	root := lab.Open(t, tls.RootDSN())
	var socket string
	if err := root.QueryRowContext(t.Context(), "SELECT @@socket").Scan(&socket); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, dsn string
		encrypted bool
	}{
		{"TCP", tls.DSN(), false},
		{"TLS", tls.DSN() + "?tls=skip-verify", true},
		{"unix", strings.Replace(tls.DSN(), "tcp("+tls.Addr()+")", "unix("+socket+")", 1), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := routerOf(t, tt.dsn).Lease(t.Context(), on("server_1"), "")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Release()
			var name, cipher string
			if err := l.Conn().QueryRowContext(t.Context(), "SHOW STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher); err != nil || (cipher != "") != tt.encrypted {
				t.Fatalf("cipher %q, %v", cipher, err)
			}
			for range 200 {
				if err := readAll(t.Context(), l.Conn(), "SELECT seq FROM seq_1_to_50"); err != nil {
					t.Fatal(err)
				}
			}
			lab.Exec(t, tls.RootDSN(), "KILL "+strconv.FormatUint(l.Thread(), 10))
			lab.Eventually(t, 5*time.Second, "the end of the connection has come through", l.HungUp)
			if err := exec(t.Context(), l.Conn(), "INSERT INTO nowhere VALUES (1)"); shardrouter.ProgressOf(err) != shardrouter.NotSent {
				t.Errorf("got %v, want an error that says not sent", err)
			}
		})
	}
}

// certificate writes a certificate of its own issue where any user can read it.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private))(t)
	keyDER := must(x509.MarshalPKCS8PrivateKey(private))(t)

	folder := must(os.MkdirTemp("", "shardrouter"))(t) //nolint:usetesting // t.TempDir is its user's alone, and the server is another user
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	cert, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return cert, key
}
