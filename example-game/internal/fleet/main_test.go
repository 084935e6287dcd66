package fleet_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/shardhop/shardhop/internal/lab"
)

// database is the one MariaDB behind the shards of every test. Tests break the
// proxies in front of it, not the server, and name their players apart.
var database *lab.MariaDBServer

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(runProgram())
	}
	os.Exit(lab.Main(m,
		func(t testing.TB) { database = lab.MariaDB(t) },
		func() error {
			return goleak.Find(
				// scs.New starts it for the store that sessionstore then replaces.
				goleak.IgnoreAnyFunction("github.com/alexedwards/scs/v2/memstore.(*MemStore).startCleanup"))
		}))
}
