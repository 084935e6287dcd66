package middleware

import (
	"context"
	"net/http"
	"time"
)

// mostMargin is how long before the server's write timeout, at most, the last
// connection is taken: what is left is for the handler and its answer.
const mostMargin = time.Second

// lastCall is when a request that has just come in must have its connection.
// Past the WriteTimeout of its http.Server the client sees the
// connection close, whatever the handler goes on to commit for it. Zero: the
// server sets no such bound.
func lastCall(ctx context.Context) time.Time {
	server, ok := ctx.Value(http.ServerContextKey).(*http.Server)
	if !ok || server.WriteTimeout <= 0 {
		return time.Time{}
	}
	return time.Now().Add(server.WriteTimeout - min(server.WriteTimeout/4, mostMargin))
}

// inTime returns ctx with the bound of the seat's last call, if there is one.
func (s *seat) inTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.lastCall.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, s.lastCall, ErrTooLate)
}
