package shardrouter_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/shardhop/shardhop/internal/lab"
)

// server is one MariaDB that the tests of this package share. They break the
// proxies in front of it, not the server.
var server *lab.MariaDBServer

func TestMain(m *testing.M) {
	os.Exit(lab.Main(m,
		func(t testing.TB) { server = lab.MariaDB(t) },
		func() error { return goleak.Find() }))
}
