package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// redisLogPause is the least time between two lines of go-redis. A Redis that
// is away makes it write one for every dial.
const redisLogPause = 10 * time.Second

// redisLog takes what go-redis logs, throttled. Its method is safe for use by
// several goroutines.
type redisLog struct {
	log *slog.Logger

	mu      sync.Mutex // taken by every goroutine that go-redis logs from
	last    time.Time
	dropped int
}

func newRedisLog(log *slog.Logger) *redisLog { return &redisLog{log: log} }

// Printf logs a line, or counts it when there was one a moment ago.
func (l *redisLog) Printf(ctx context.Context, format string, v ...any) {
	dropped, ok := l.due(time.Now())
	if ok {
		l.log.WarnContext(ctx, "redis client: "+fmt.Sprintf(format, v...), "left_out_before", dropped)
	}
}

// due reports whether a line may be written now, and how many were left out.
func (l *redisLog) due(now time.Time) (dropped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() && now.Sub(l.last) < redisLogPause {
		l.dropped++
		return 0, false
	}
	dropped, l.dropped, l.last = l.dropped, 0, now
	return dropped, true
}
