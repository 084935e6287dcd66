package sessionstore_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/sessionstore"
)

func Example() {
	server, err := miniredis.Run() // a real program has a Redis
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	defer func() { _ = rdb.Close() }()

	sessions := sessionstore.New(rdb, sessionstore.Config{})

	mux := http.NewServeMux()
	mux.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		if err := sessions.RenewToken(r.Context()); err != nil {
			http.Error(w, "try again", http.StatusInternalServerError)
			return
		}
		sessions.Put(r.Context(), "name", "Ada")
		// The middleware package claims the route; here it is done by hand.
		if _, err := sessions.Claim(r.Context(), sessionstore.Route{Group: "default"}.Moved("server_2")); err != nil {
			fmt.Println(err)
		}
		_, _ = io.WriteString(w, "welcome")
	})
	mux.HandleFunc("/me", func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		_, _ = fmt.Fprintf(w, "%s plays on %s", sessions.GetString(ctx, "name"), sessions.GetString(ctx, "db_server"))
	})
	site := httptest.NewServer(sessions.LoadAndSave(mux))
	defer site.Close()

	player := site.Client()
	player.Jar, _ = cookiejar.New(nil)
	for _, path := range []string{"/login", "/me"} {
		res, err := player.Get(site.URL + path)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		fmt.Printf("%s %d %s\n", path, res.StatusCode, body)
	}
	key := server.Keys()[0]
	fmt.Println("HGET session:... db_server:", server.HGet(key, "db_server"))
	fmt.Printf("HGET session:... d:name: %q\n", server.HGet(key, "d:name"))

	// Output:
	// /login 200 welcome
	// /me 200 Ada plays on server_2
	// HGET session:... db_server: server_2
	// HGET session:... d:name: "\x8cAda"
}
