package shardrouter_test

import (
	"context"
	"database/sql"
	"log"

	"github.com/shardhop/shardhop/shardrouter"
)

// job lends Tx the connections of one shard, one after the other.
type job struct {
	router *shardrouter.Router
	shard  string
	lease  *shardrouter.Lease // nil while none is out
}

func (j *job) Lease(ctx context.Context) (l *shardrouter.Lease, err error) {
	if j.lease == nil {
		j.lease, err = j.router.Acquire(ctx, j.shard)
	}
	return j.lease, err
}

func (j *job) Lost(*shardrouter.Lease) { j.end() }

func (j *job) end() {
	if j.lease != nil {
		j.lease.Release()
		j.lease = nil
	}
}

// Work without a request, such as a job at night, has the transactions of a
// handler.
func ExampleTx() {
	router, err := shardrouter.New(shardrouter.Config{Shards: []shardrouter.Shard{
		{Name: "server_1", DSN: "app:secret@tcp(10.0.0.1:3306)/game"},
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer router.Close()

	j := &job{router: router, shard: "server_1"}
	defer j.end()
	err = shardrouter.Tx(context.Background(), j, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE gold SET amount = amount + amount DIV 100")
		return err
	})
	if err != nil {
		log.Print(err)
	}
}
