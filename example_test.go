package shardhop_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/shardhop/shardhop"
	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/shardrouter"
)

// Two shards that hold the same rows, on a chi router.
func ExampleOpen() {
	hop, err := shardhop.Open(context.Background(), shardhop.Config{
		RedisURL: "redis://127.0.0.1:6379",
		Router: shardrouter.Config{Shards: []shardrouter.Shard{
			{Name: "server_1", DSN: "app:secret@tcp(10.0.0.1:3306)/game"},
			{Name: "server_2", DSN: "app:secret@tcp(10.0.0.2:3306)/game"},
		}},
		Middleware: middleware.Config{ShardHeader: "X-Shard"},
	})
	if err != nil {
		log.Fatal(err)
	}

	r := chi.NewRouter()
	r.Use(hop.Handler)
	r.Get("/players", func(w http.ResponseWriter, r *http.Request) {
		var players int
		row := middleware.Conn(r.Context()).QueryRowContext(r.Context(), "SELECT COUNT(*) FROM players")
		if err := row.Scan(&players); err != nil {
			middleware.WriteError(w, r, err)
			return
		}
		fmt.Fprintln(w, players)
	})
	log.Print(http.ListenAndServe("127.0.0.1:8080", r))
	hop.Close()
}

// Everything that is wrong with the variables is told at once, and no password.
func ExampleConfigFrom() {
	_, err := shardhop.ConfigFrom(map[string]string{
		"SHARDS":             "server_1",
		"SHARD_SERVER_1_DSN": "app:secret@tcp(10.0.0.1:3306)/game",
		"SHARD_POLICY":       "random",
		"REDIS_URL":          "redis://:secret@",
		"SESSION_LIFETIME":   "1 day",
	})
	fmt.Println(strings.ReplaceAll(err.Error(), "; ", "\n")) // it is one line
	// Output:
	// SHARD_POLICY: "random", want one of weighted, round_robin, least_conns
	// SESSION_LIFETIME: "1 day", want a duration of more than 0, such as 500ms, 5s or 1m30s
	// REDIS_URL: malformed, or with an unknown option (not shown, since it may hold a password): want redis://[user:password@]host:port[/db], rediss://… or unix:///path (standalone only), further hosts as ?addr=host:port&addr=host:port, ports from 1 to 65535
}
