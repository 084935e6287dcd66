package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TLSRedis is a redis-server that also takes TLS connections, on a port beside
// the plain one. Its certificate is made for this server and names 127.0.0.1.
type TLSRedis struct {
	*RedisServer

	certificate *certificate
}

// RedisTLS starts a redis-server with a TLS port that ends with t.
func RedisTLS(t testing.TB, opts ...Option) *TLSRedis {
	t.Helper()
	cert := newCertificate(t)
	s := newRedisWith(t, options{collect(opts).args, cert})
	s.Start()
	return &TLSRedis{RedisServer: s, certificate: cert}
}

// URL returns the TLS address as rediss://host:port.
func (s *TLSRedis) URL() string { return "rediss://" + s.peerAddr() }

// RootCAs returns the one certificate to trust.
func (s *TLSRedis) RootCAs() *x509.CertPool { return s.certificate.roots }

// CAFile returns the path of that certificate as PEM.
func (s *TLSRedis) CAFile() string { return s.certificate.path }

// certificate is one that servers of a test show.
type certificate struct {
	path, keyPath string
	roots         *x509.CertPool // trusts it
}

func newCertificate(t testing.TB) *certificate {
	t.Helper()
	folder := workFolder(t, "certificate")
	c := &certificate{path: filepath.Join(folder, "cert.pem"), keyPath: filepath.Join(folder, "key.pem")}
	var err error
	if c.roots, err = makeCertificate(c.path, c.keyPath); err != nil {
		t.Fatalf("lab: certificate: %v", err)
	}
	return c
}

// directives are the names and values by which a redis-server or a sentinel takes
// TLS on port, and uses it towards its own kind.
func (c *certificate) directives(port int) [][2]string {
	return [][2]string{
		{"tls-port", strconv.Itoa(port)},
		{"tls-cert-file", c.path},
		{"tls-key-file", c.keyPath},
		{"tls-ca-cert-file", c.path},
		{"tls-auth-clients", "no"},
		{"tls-replication", "yes"},
		{"tls-cluster", "yes"},
	}
}

// arguments are the directives as a command line has them.
func (c *certificate) arguments(port int) []string {
	var args []string
	for _, d := range c.directives(port) {
		args = append(args, "--"+d[0], d[1])
	}
	return args
}

// tlsLines make sentinel i take TLS, and speak it to the servers.
func (s *SentinelRedis) tlsLines(i int) []string {
	_, text, _ := net.SplitHostPort(s.sentinels[i].tlsAddr)
	port, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	var lines []string
	for _, d := range s.certificate.directives(port) {
		lines = append(lines, d[0]+" "+d[1])
	}
	return lines
}

// makeCertificate writes a self-signed certificate for 127.0.0.1 and its key,
// and returns a pool that trusts it.
func makeCertificate(certPath, keyPath string) (*x509.CertPool, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	if err := os.WriteFile(certPath, certPEM, 0o600); err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	return roots, os.WriteFile(keyPath, keyPEM, 0o600)
}
