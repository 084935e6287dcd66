package shardrouter_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/shardrouter"
)

// BenchmarkLease measures what the way through candidates, bulkhead and books
// costs beside taking a connection out of a bare sql.DB, both without a word
// to the server, and then the wrapper's part of a query.
func BenchmarkLease(b *testing.B) {
	router, err := shardrouter.New(shardrouter.Config{
		Logger: quiet(),
		Shards: []shardrouter.Shard{
			{Name: "server_1", DSN: dsnAt(server.Addr())},
			{Name: "server_2", DSN: dsnAt(server.Addr())},
			{Name: "server_3", DSN: dsnAt(server.Addr())},
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer router.Close()
	db := bareDB(b)
	defer db.Close()

	const query = "SELECT 1"
	b.Run("conn/bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			conn, err := db.Conn(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			_ = conn.Close()
		}
	})
	b.Run("conn/lease", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			lease, err := router.Lease(b.Context(), on("server_1"), "")
			if err != nil {
				b.Fatal(err)
			}
			lease.Release()
		}
	})
	b.Run("query/bare", func(b *testing.B) {
		b.ReportAllocs()
		conn, err := db.Conn(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		benchmarkQuery(b, conn, query)
	})
	b.Run("query/lease", func(b *testing.B) {
		b.ReportAllocs()
		lease, err := router.Lease(b.Context(), on("server_1"), "")
		if err != nil {
			b.Fatal(err)
		}
		defer lease.Release()
		benchmarkQuery(b, lease.Conn(), query)
	})
}

// bareDB opens the server with the driver alone and the router's timeouts,
// which cost something too.
func bareDB(b *testing.B) *sql.DB {
	b.Helper()
	cfg, err := mysql.ParseDSN(server.DSN())
	if err != nil {
		b.Fatal(err)
	}
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = 5*time.Second, 30*time.Second, 10*time.Second
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		b.Fatal(err)
	}
	return sql.OpenDB(connector)
}

func benchmarkQuery(b *testing.B, conn *sql.Conn, query string) {
	b.Helper()
	for b.Loop() {
		var one int
		if err := conn.QueryRowContext(b.Context(), query).Scan(&one); err != nil {
			b.Fatal(err)
		}
	}
}
