// Package stop hears the signals that end the program, from its first moment.
//
// The packages of the embedded MySQL take up to a second to initialise, before
// main runs, and a signal that came meanwhile would end the process as if it
// had crashed. This package listens in its own initialisation, and imports so
// little that its turn comes first.
package stop

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// told gets the first signal. It stands here and not in main since main is too
// late; nothing assigns to it again.
var told = listen()

func listen() <-chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	return c
}

// Context returns a context that ends with the first SIGINT or SIGTERM, also
// with one that has come already. After that a second one ends the process at
// once. Call it once; the goroutine that listens lives as long as the process.
func Context() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	end := func() {
		signal.Reset(os.Interrupt, syscall.SIGTERM)
		cancel()
	}
	select {
	case <-told:
		end()
	default:
		go func() {
			<-told
			end()
		}()
	}
	return ctx
}
