// Command example-game is a small browser game on shardhop: players dig for
// gold and give it away, and play on when the server of their rows dies.
//
// Without any variable set it brings its own MySQL cluster and its own Redis,
// in memory:
//
//	go run ./example-game
//
// The environment configures it; see [app].
package main

import (
	"fmt"
	"os"

	"github.com/shardhop/shardhop/example-game/internal/app"
	"github.com/shardhop/shardhop/example-game/internal/stop"
)

func main() {
	if err := app.Run(stop.Context(), os.Environ(), os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "example-game:", err)
		os.Exit(1)
	}
}
