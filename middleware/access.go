package middleware

import (
	"context"
	"database/sql"
)

// What Conn panics with when there is no connection, by how that came.
const (
	remedyLazy     = "middleware: Conn without a connection: in lazy mode call Acquire first"
	remedyReleased = "middleware: Conn after Release: call Acquire to take another connection"
	remedyStream   = "middleware: Conn in an event stream, which gave its connection back when it began: call Acquire to take another, and Release after use"
	remedyHijacked = "middleware: Conn on a hijacked request, such as a WebSocket, which gave its connection back: call Acquire to take another, and Release after use"
)

// Conn returns the request's connection, verified and on the session's shard.
// It is valid until the handler returns, or until Release, Assign, Move or Tx
// replace it; ask again after those, and leave its Close to them. Conn panics
// when the middleware is not mounted, is lazy and Acquire was not called, or
// when the connection was given back: by Release, by an event stream that
// began, or by a hijack.
func Conn(ctx context.Context) *sql.Conn {
	s := seatOf(ctx, "Conn")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		panic(s.remedy)
	}
	return s.conn
}

// Acquire returns the request's connection and takes it first if there is
// none: in lazy mode, or after Release. Of several goroutines that call it at
// once all get the same connection. The error, if any, is for the handler to
// answer; WriteError does so as the middleware would.
func Acquire(ctx context.Context) (*sql.Conn, error) {
	l, err := seatOf(ctx, "Acquire").acquire(ctx)
	if err != nil {
		return nil, err
	}
	return l.Conn(), nil
}

// Release gives the connection back before the handler ends, as a long poll
// or a stream should. Acquire takes a new one. Without a connection it does
// nothing.
func Release(ctx context.Context) {
	seatOf(ctx, "Release").giveBack(remedyReleased)
}

// Shard names the shard that serves the request, also after Release; empty
// before the first lease.
func Shard(ctx context.Context) string {
	return seatOf(ctx, "Shard").servedBy()
}

// Home names the shard first assigned to the session; empty while none is.
func Home(ctx context.Context) string {
	rt, _ := seatOf(ctx, "Home").mount.cfg.Sessions.Route(ctx)
	return rt.Home
}

// Rotated reports whether this request was moved off the shard that its
// session named when the request came in: what it reads may be other rows,
// unless the shards hold the same ones. A shard chosen by Assign or Move
// counts as the session's from then on.
func Rotated(ctx context.Context) bool {
	return seatOf(ctx, "Rotated").rotated()
}
