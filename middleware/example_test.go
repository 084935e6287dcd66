package middleware_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-chi/chi/v5"
	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/sessionstore"
	"github.com/shardhop/shardhop/shardrouter"
)

// On chi, with a connection for every request.
func Example_chi() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	sessions := sessionstore.New(rdb, sessionstore.Config{})
	router, err := shardrouter.New(shardrouter.Config{
		Redis: rdb,
		Shards: []shardrouter.Shard{
			{Name: "server_1", DSN: "app:secret@tcp(10.0.0.1:3306)/game"},
			{Name: "server_2", DSN: "app:secret@tcp(10.0.0.2:3306)/game"},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = router.Close() }()

	r := chi.NewRouter()
	r.Use(sessions.LoadAndSave)
	r.Use(middleware.New(middleware.Config{Sessions: sessions, Router: router, ShardHeader: "X-Shard"}))
	r.Get("/me", func(w http.ResponseWriter, r *http.Request) {
		var gold int
		err := middleware.Conn(r.Context()).QueryRowContext(r.Context(),
			"SELECT gold FROM players WHERE name = ?", sessions.GetString(r.Context(), "name")).Scan(&gold)
		if err != nil {
			middleware.WriteError(w, r, err)
			return
		}
		_, _ = fmt.Fprintln(w, gold)
	})
	r.Post("/dig", func(w http.ResponseWriter, r *http.Request) {
		err := middleware.Tx(r.Context(), func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx,
				"UPDATE players SET gold = gold + 1 WHERE name = ?", sessions.GetString(ctx, "name"))
			return err
		})
		if err != nil {
			middleware.WriteError(w, r, err)
		}
	})
	server := &http.Server{Addr: ":8080", Handler: r, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// On http.ServeMux, in lazy mode: only the handlers that ask for a connection
// take one. No shard answers here, so the one that asks has to refuse.
func Example_serveMux() {
	stand, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer stand.Close()
	rdb := redis.NewClient(&redis.Options{Addr: stand.Addr()})
	defer func() { _ = rdb.Close() }()

	sessions := sessionstore.New(rdb, sessionstore.Config{})
	quiet := slog.New(slog.DiscardHandler)
	router, err := shardrouter.New(shardrouter.Config{
		Shards: []shardrouter.Shard{{Name: "server_1", DSN: "app:secret@tcp(127.0.0.1:1)/game"}},
		Logger: quiet,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = router.Close() }()

	mux := http.NewServeMux()
	mux.HandleFunc("GET /rules", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "Dig.")
	})
	mux.HandleFunc("GET /me", func(w http.ResponseWriter, r *http.Request) {
		conn, err := middleware.Acquire(r.Context())
		if err != nil {
			middleware.WriteError(w, r, err)
			return
		}
		_ = conn.PingContext(r.Context())
	})
	lend := middleware.New(middleware.Config{Sessions: sessions, Router: router, Lazy: true, Logger: quiet})
	server := httptest.NewServer(sessions.LoadAndSave(lend(mux)))
	defer server.Close()

	for _, path := range []string{"/rules", "/me"} {
		res, err := http.Get(server.URL + path)
		if err != nil {
			log.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		fmt.Printf("%s: %s, Retry-After %q\n%s", path, res.Status, res.Header.Get("Retry-After"), body)
	}
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// /rules: 200 OK, Retry-After ""
	// Dig.
	// /me: 503 Service Unavailable, Retry-After "1"
	// {"status":503,"title":"Service Unavailable","code":"unavailable"}
}
