package shardrouter

import (
	"context"
	"log/slog"
	"time"
)

// Hold exposes a hold to the tests.
type Hold struct{ h *hold }

func NewHold(most int, limit, pause time.Duration, prove func(ctx context.Context) bool) Hold {
	return Hold{newHold(holdConfig{most: most, limit: limit, pause: pause, prove: prove, log: slog.New(slog.DiscardHandler)})}
}

func (t Hold) Wait(ctx context.Context, since, failed time.Time, news <-chan struct{}) error {
	return t.h.wait(ctx, since, failed, news)
}

func (t Hold) Served(sought time.Time) { t.h.served(sought) }

func (t Hold) End(sought time.Time) { t.h.end(sought) }
func (t Hold) Over() bool           { return t.h.over() }
func (t Hold) Close()               { t.h.close() }

func (t Hold) Waiting() int {
	n, _ := t.h.held()
	return n
}

func (t Hold) Outage() bool {
	_, since := t.h.held()
	return !since.IsZero()
}
