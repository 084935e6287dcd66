package shardrouter_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// serverID is what the server of a new lease of server_1 calls itself.
func serverID(t *testing.T, r *shardrouter.Router) (id int) {
	t.Helper()
	l, err := r.Lease(t.Context(), on("server_1"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	if err := l.Conn().QueryRowContext(t.Context(), "SELECT @@global.server_id").Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// Another server answers at a node's address: one of several gets no lease before
// it is recorded as the writer, and that it is another one is noticed. A shard of
// one node is whatever answers at its address.
func TestServerSwappedAtItsAddress(t *testing.T) {
	pair, other := lab.MariaDBPair(t), lab.MariaDB(t, lab.WithArgs("--server-id=77"))
	for _, several := range []bool{false, true} {
		t.Run(fmt.Sprintf("several nodes: %v", several), func(t *testing.T) {
			proxy := faultproxy.New(t, pair.Node(0).Addr())
			addrs := proxy.Addr()
			if several {
				addrs += "," + pair.Node(1).Addr()
			}
			r := start(t, shardrouter.Config{
				HealthInterval: 200 * time.Millisecond, Redis: lab.Redis(t).Client(), Logger: slog.New(slog.DiscardHandler),
				Shards: []shardrouter.Shard{{Name: "server_1", DSN: shardrouter.DSN(pair.Node(0).DSNAt(addrs))}},
			})
			if id := serverID(t, r); id != 1 {
				t.Fatalf("server %d serves before the swap", id)
			}
			proxy.Redirect(other.Addr())
			proxy.SetMode(faultproxy.Cut) // which ends what is open
			proxy.SetMode(faultproxy.Pass)
			if id := serverID(t, r); id != 77 {
				t.Errorf("server %d serves after the swap", id)
			}
			w, _ := r.Health().Writer("server_1")
			if several && (w.Epoch < 2 || w.Announced() || !strings.HasSuffix(w.Server, "#77")) {
				t.Errorf("a lease was given, and the record is %+v", w)
			}
		})
	}
}
