package shardrouter

import (
	"context"
	"testing"
)

// Dial opens a connection to the first node of a shard and closes it, with or
// without asking the server who it is.
func Dial(ctx context.Context, t testing.TB, r *Router, shard string, introduced bool) {
	t.Helper()
	p := r.layout.Load().pool(shard)
	conn, err := p.connector.nodes[0].connect(ctx, p.era.Load())
	if err == nil && introduced {
		err = p.connector.meet(ctx, conn, p.connector.writer.Load())
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}
