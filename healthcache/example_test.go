package healthcache_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/shardhop/shardhop/healthcache"
)

// A shard fails a request, a probe judges, and an operator drains the other.
func Example() {
	broken := make(chan struct{})
	cache, err := healthcache.New(healthcache.Config{
		Shards: []string{"server_1", "server_2"},
		Probe: func(ctx context.Context, shard string) healthcache.Result {
			select {
			case <-broken:
				if shard == "server_1" {
					return healthcache.Result{State: healthcache.Down, Reason: "connection refused"}
				}
			default:
			}
			return healthcache.Result{State: healthcache.Up}
		},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	cache.Start()
	defer cache.Close()
	ctx := context.Background()

	fmt.Println("server_1 is", cache.Check(ctx, "server_1").State)

	close(broken)
	cache.Suspect("server_1", "invalid connection")
	v := cache.Settle(ctx, "server_1")
	fmt.Println("server_1 is", v.State, "because of:", v.Reason)

	cache.Check(ctx, "server_2")
	if err := cache.Drain(ctx, "server_2", "new disks", 0); err != nil {
		fmt.Println(err)
		return
	}
	v = cache.View("server_2")
	fmt.Println("server_2 is", v.State, "because of:", v.DrainReason)

	// Output:
	// server_1 is up
	// server_1 is down because of: connection refused
	// server_2 is draining because of: new disks
}
