package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second
	// writeTimeout is longer than a request may wait for a shard. An event
	// stream sets its own.
	writeTimeout   = 120 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 32 << 10
)

// listener is one port with its server.
type listener struct {
	server *http.Server
	ln     net.Listener
	failed chan error // gets at most one error, when serving ends by itself
	done   chan struct{}
}

// listen takes the port, and serves nothing yet.
func listen(ctx context.Context, variable, addr string, log *slog.Logger) (*listener, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot listen on %s: %w", variable, addr, err)
	}
	return &listener{
		ln:     ln,
		failed: make(chan error, 1),
		done:   make(chan struct{}),
		server: &http.Server{
			ReadHeaderTimeout: headerTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
	}, nil
}

func (l *listener) addr() string { return l.ln.Addr().String() }

// serve begins to answer with h.
func (l *listener) serve(h http.Handler) {
	l.server.Handler = h
	go func() {
		defer close(l.done)
		if err := l.server.Serve(l.ln); !errors.Is(err, http.ErrServerClosed) {
			l.failed <- err
		}
	}()
}

// shutdown takes no more connections, lets running requests end until ctx is
// done, and cuts what is left then.
func (l *listener) shutdown(ctx context.Context) {
	if err := l.server.Shutdown(ctx); err != nil {
		_ = l.server.Close()
	}
	if l.server.Handler == nil {
		_ = l.ln.Close() // never served, so the server does not know the port
		return
	}
	<-l.done
}
