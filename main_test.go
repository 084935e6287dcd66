package shardhop_test

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/shardhop/shardhop/internal/lab"
)

// trusted is a Redis whose certificate this program trusts.
var trusted *lab.TLSRedis

// clientLog is what all clients of Redis say.
var clientLog = new(lineLog)

func TestMain(m *testing.M) {
	redis.SetLogger(clientLog)
	os.Exit(lab.Main(m, func(t testing.TB) {
		trusted = lab.RedisTLS(t)
		// Read once in the life of a program, at the first handshake.
		if err := os.Setenv("SSL_CERT_FILE", trusted.CAFile()); err != nil { //nolint:usetesting // for the whole program; lab.Main has no Setenv
			t.Fatal(err)
		}
	}, func() error {
		return goleak.Find(
			// scs.New starts it and has no safe way to stop it.
			goleak.IgnoreAnyFunction("github.com/alexedwards/scs/v2/memstore.(*MemStore).startCleanup"),
		)
	}))
}
