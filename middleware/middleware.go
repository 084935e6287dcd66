package middleware

import (
	"context"
	"database/sql"
	"log/slog"
	"net/http"
	"time"

	"github.com/shardhop/shardhop/internal/route"
	"github.com/shardhop/shardhop/shardrouter"
)

// Route says which shard serves a session: its Group, Shard, Home and Epoch.
type Route = route.Route

// Sessions is what the middleware needs of a session store; see
// sessionstore.Manager.
type Sessions interface {
	// Route returns the route of the request's session. False: the session has
	// none, or there is no session.
	Route(ctx context.Context) (Route, bool)
	// Claim stores next as the route of the request's session, if the stored
	// route is still the one that Route returned. It returns the route that
	// stands afterwards: next, or the winner's when another request was
	// faster. For a session that is not stored yet, next is kept for its
	// creation. An error means that nothing is known to be stored; the caller
	// then serves the request as a detour.
	Claim(ctx context.Context, next Route) (Route, error)
	// Key returns a stable key of the session that reveals nothing about its
	// token; empty when there is no session.
	Key(ctx context.Context) string
}

// Config configures [New]. Sessions and Router are required.
type Config struct {
	// Sessions holds the routes.
	Sessions Sessions
	// Router lends the connections.
	Router *shardrouter.Router
	// Lazy takes a connection only when the handler asks for it with Acquire.
	Lazy bool
	// Group is where sessions without a route are assigned. Default: the group
	// of the first shard.
	Group string
	// ShardHeader is the name of a response header that tells the serving
	// shard, such as X-Shard. Default: none.
	ShardHeader string
	// ClaimTimeout bounds the write of a changed route. Default 2s.
	ClaimTimeout time.Duration
	// RetryAfter is what a 503 tells the client to wait. Default 1s.
	RetryAfter time.Duration
	// ErrorHandler answers when no connection can be had. err is for the log
	// only. Default: 503 as application/problem+json, or a maintenance page
	// for browsers.
	ErrorHandler func(w http.ResponseWriter, r *http.Request, err error)
	// Logger takes rotations, detours and refusals. Default slog.Default().
	Logger *slog.Logger
}

// New returns the middleware. It panics when Config lacks Sessions or Router.
func New(cfg Config) func(http.Handler) http.Handler { panic("not implemented") }

// Conn returns the request's connection. It panics when the middleware is not
// mounted, or is lazy and Acquire was not called.
func Conn(ctx context.Context) *sql.Conn { return nil }

// Acquire returns the request's connection and takes it first if there is
// none: in lazy mode, or after Release.
func Acquire(ctx context.Context) (*sql.Conn, error) { return nil, nil }

// Tx runs fn in a transaction on the request's connection; see shardrouter.Tx.
// The lease may move to another shard between two runs of fn.
func Tx(ctx context.Context, fn shardrouter.TxFunc) error { return nil }

// TxWith is Tx with options.
func TxWith(ctx context.Context, opts shardrouter.TxOptions, fn shardrouter.TxFunc) error { return nil }

// Shard names the shard that serves the request; empty before a lease.
func Shard(ctx context.Context) string { return "" }

// Home names the shard first assigned to the session.
func Home(ctx context.Context) string { return "" }

// Rotated reports whether this request was moved off the shard that its
// session named when the request came in.
func Rotated(ctx context.Context) bool { return false }

// Release gives the connection back before the handler ends, as a long poll
// or a stream should. Acquire takes a new one.
func Release(ctx context.Context) {}

// Assign starts a new route for the session in group, at login: a first
// assignment with a verified connection, and that shard as home.
func Assign(ctx context.Context, group string) error { return nil }

// Move moves the session to shard by the server's own decision, with a
// verified connection of that shard.
func Move(ctx context.Context, shard string) error { return nil }
