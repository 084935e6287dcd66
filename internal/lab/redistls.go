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

	tlsAddr string
	cert    string // path
	roots   *x509.CertPool
}

// RedisTLS starts a redis-server with a TLS port that ends with t.
func RedisTLS(t testing.TB, opts ...Option) *TLSRedis {
	t.Helper()
	folder := workFolder(t, "certificate")
	cert, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	roots, err := makeCertificate(cert, key)
	if err != nil {
		t.Fatalf("lab: certificate: %v", err)
	}
	port := FreePort(t)
	args := append([]string{
		"--tls-port", strconv.Itoa(port),
		"--tls-cert-file", cert,
		"--tls-key-file", key,
		"--tls-ca-cert-file", cert,
		"--tls-auth-clients", "no",
	}, collect(opts).args...)
	s := newRedis(t, args...)
	s.Start()
	return &TLSRedis{RedisServer: s, tlsAddr: loopback(port), cert: cert, roots: roots}
}

// URL returns the TLS address as rediss://host:port.
func (s *TLSRedis) URL() string { return "rediss://" + s.tlsAddr }

// RootCAs returns the one certificate to trust.
func (s *TLSRedis) RootCAs() *x509.CertPool { return s.roots }

// CAFile returns the path of that certificate as PEM.
func (s *TLSRedis) CAFile() string { return s.cert }

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
