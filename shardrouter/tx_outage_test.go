package shardrouter_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// The only server of a group is killed at some moment of a transaction and comes
// back within the hold, later than one search for a connection would last. The
// transaction is committed once, with and without a client's key.
func TestTxOutlivesItsOnlyServer(t *testing.T) {
	own := lab.MariaDB(t)
	db := lab.Open(t, own.DSN())
	lab.Exec(t, own.DSN(), "CREATE TABLE tx (n INT)", shardrouter.OutcomeDDL)
	proxy := faultproxy.New(t, own.Addr())
	router := open(t, shardrouter.Config{
		Logger: quiet(), AcquireTimeout: time.Second, HealthInterval: 100 * time.Millisecond,
		Shards: []shardrouter.Shard{{Name: "server_1", DSN: shardrouter.DSN(own.DSNAt(proxy.Addr()))}},
	})
	s := &session{f: &fleet{Router: router}, shard: "server_1"}
	defer s.end()
	moments := []struct {
		at   string
		when faultproxy.When
	}{
		{"START TRANSACTION", faultproxy.BeforeForward},
		{"INTO tx", faultproxy.AfterReply},
		{"COMMIT", faultproxy.BeforeForward},
		{"COMMIT", faultproxy.AfterForward},
		{"COMMIT", faultproxy.AfterReply},
	}
	for i, m := range moments {
		for n, key := range []string{"", fmt.Sprint("key ", i)} {
			cut := proxy.CutAfter([]byte(m.at), m.when)
			back := make(chan struct{})
			go func() {
				defer close(back)
				<-cut
				proxy.SetMode(faultproxy.Refuse)
				own.Kill()
				<-time.After(1500 * time.Millisecond) // one search is over by then
				own.Start()
				proxy.SetMode(faultproxy.Pass)
			}()
			answer, err := shardrouter.TxAnswer(t.Context(), s, shardrouter.TxOptions{Key: key},
				func(ctx context.Context, tx *sql.Tx) ([]byte, error) { return []byte("dug"), insertOne(ctx, tx) })
			<-back
			var rows int
			if scan := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM tx").Scan(&rows); scan != nil {
				t.Fatal(scan)
			}
			if want := 2*i + n + 1; err != nil || string(answer.Body) != "dug" || answer.Repeated || rows != want {
				t.Errorf("%s, cut %v, key %q: got %q, repeated %v, %v and %d rows, want %d", m.at, m.when, key, answer.Body, answer.Repeated, err, rows, want)
			}
		}
	}
	if st := router.Stats()[0]; st.SettledCommitted < 2 || st.SettledUnknown != 0 {
		t.Errorf("settled %d as committed and %d as unknown, want two and none", st.SettledCommitted, st.SettledUnknown)
	}
}
