package sessionstore

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// circuitFailures is after how many calls in a row without an answer a
	// server counts as gone.
	circuitFailures = 3
	// circuitPause is how long a server that is gone is left alone between two
	// calls that try it.
	circuitPause = 500 * time.Millisecond
)

// circuit refuses calls to a Redis server that does not answer, so that not
// every request waits for its timeout. A call in every pause is let through and
// tries the server; the first answer ends it. It runs no goroutine, and costs
// one atomic load while all is well. It is safe for use by several goroutines.
//
//	closed ── three calls in a row without an answer ──► open ─┐ all refused but
//	   ▲                                                  │ ▲  │ one per pause
//	   └──────────────────── an answer ───────────────────┘ └──┘
type circuit struct {
	// server names the server that holds key; "" if there is but one, or if
	// that cannot be told.
	server func(ctx context.Context, key string) string
	logger *slog.Logger

	failing atomic.Int32 // len(lines)

	mu    sync.Mutex
	lines map[string]*line // the servers whose last call had no answer
}

// line is the state of one server, guarded by its circuit's mu.
type line struct {
	failures int
	open     bool
	retryAt  time.Time // when the next call may try; while open
	trying   bool      // a call tries now; while open
}

// permit is one call that was let through.
type permit struct {
	trial  bool   // it tries a server that is gone
	server string // which one
}

func newCircuit(rdb redis.UniversalClient, logger *slog.Logger) *circuit {
	return &circuit{server: serverOf(rdb), logger: logger, lines: map[string]*line{}}
}

// enter lets a call for key through or refuses it. Who was let through must
// leave.
func (c *circuit) enter(ctx context.Context, key string) (permit, error) {
	if c.failing.Load() == 0 {
		return permit{}, nil
	}
	if p, err := c.try("", time.Now()); err != nil || p.trial {
		return p, err
	}
	server := c.server(ctx, key)
	if server == "" {
		return permit{}, nil
	}
	return c.try(server, time.Now())
}

// try lets a call to server through: always while it is closed, and as the one
// that tries it when its pause is over.
func (c *circuit) try(server string, now time.Time) (permit, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[server]
	switch {
	case l == nil || !l.open:
		return permit{}, nil
	case l.trying || now.Before(l.retryAt):
		return permit{}, ErrUnavailable
	}
	l.trying = true
	return permit{trial: true, server: server}, nil
}

// leave ends the call of p for key, with err as its result. ctx is the call's
// own, or its caller's.
func (c *circuit) leave(ctx context.Context, p permit, key string, err error) {
	ev := judge(ctx, err)
	if ev == answered && c.failing.Load() == 0 {
		return
	}
	if !p.trial {
		p.server = c.server(ctx, key)
	}
	switch c.note(p, ev) {
	case opened:
		c.logger.ErrorContext(ctx, "Redis does not answer: sessions are refused until it does", "server", p.server, "error", err)
	case closed:
		c.logger.InfoContext(ctx, "Redis answers again", "server", p.server)
	}
}

// turn is what a call changed.
type turn int

const (
	unchanged turn = iota
	opened
	closed
)

// note takes down what the call of p says about its server.
func (c *circuit) note(p permit, ev evidence) turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[p.server]
	if p.trial && l != nil {
		l.trying = false
	}
	switch {
	case ev == silent:
		return c.failedLocked(p, l)
	case ev == nothing || l == nil:
		return unchanged
	}
	delete(c.lines, p.server)
	c.failing.Store(int32(len(c.lines)))
	if l.open {
		return closed
	}
	return unchanged
}

// failedLocked counts a call without an answer. Of an open line only the call
// that tried it counts: the others began before it was opened.
func (c *circuit) failedLocked(p permit, l *line) turn {
	if l == nil {
		l = new(line)
		c.lines[p.server] = l
		c.failing.Store(int32(len(c.lines)))
	}
	l.failures++
	switch {
	case l.open && p.trial:
		l.retryAt = time.Now().Add(circuitPause)
	case !l.open && l.failures >= circuitFailures:
		l.open, l.retryAt = true, time.Now().Add(circuitPause)
		return opened
	}
	return unchanged
}

// evidence is what the result of a call says about the server.
type evidence int

const (
	answered evidence = iota // it is there, whatever it said
	silent
	nothing // the caller went away
)

// judge tells what err says about the server. An error that the server itself
// sent, such as LOADING or READONLY, comes at once and needs no circuit.
func judge(ctx context.Context, err error) evidence {
	if err == nil {
		return answered
	}
	var reply redis.Error
	switch {
	case errors.As(err, &reply):
		return answered
	case ctx.Err() != nil && context.Cause(ctx) != errNoAnswer: //nolint:errorlint // a cause comes as it was given
		return nothing
	}
	return silent
}

// serverOf returns how to tell the server of a key, without asking any.
func serverOf(rdb redis.UniversalClient) func(context.Context, string) string {
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		return func(context.Context, string) string { return "" }
	}
	return func(ctx context.Context, key string) string {
		// A client that has never reached its cluster would ask for the map of it
		// now, and wait for servers that do not answer.
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		master, err := cluster.MasterForKey(ctx, key)
		if err != nil {
			return ""
		}
		return master.Options().Addr
	}
}
