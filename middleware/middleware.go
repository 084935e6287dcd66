package middleware

import (
	"context"
	"net/http"

	"github.com/shardhop/shardhop/internal/route"
)

// Route says which shard serves a session: its Group, Shard, Home and Epoch.
type Route = route.Route

// Sessions is what the middleware needs of a session store; see
// sessionstore.Manager. Its methods must be safe for use by several
// goroutines.
//
// A store may also have ClaimLater(ctx, next) bool. It is called after a Claim
// of a rotation that failed; true says that the store keeps next, stores it
// when it can, and serves the session by it until then.
//
// And it may have Changed(ctx) bool, which reports whether the request has
// changed anything in its session. Without it no request is run again.
type Sessions interface {
	// Route returns the route of the request's session, with what Claim has
	// changed in this request. False: the session has none, or there is no
	// session.
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

// claimsLater is the optional part of Sessions.
type claimsLater interface {
	ClaimLater(ctx context.Context, next Route) bool
}

// New returns the middleware. Mount it inside the session middleware. It
// panics when Config lacks Sessions or Router, or names an unknown Group. What
// it returns is safe for use by several goroutines.
func New(cfg Config) func(http.Handler) http.Handler {
	if cfg.Router == nil {
		panic("middleware: Config.Router is nil: make one with shardrouter.New")
	}
	return newMount(cfg, pools{cfg.Router}, cfg.Router).wrap
}

// mount is the middleware's part that all requests share. It is immutable.
type mount struct {
	cfg    Config
	lender lender
	layout layout
	// changes is nil when the session store cannot tell.
	changes changes
}

func newMount(cfg Config, ln lender, lo layout) *mount {
	if cfg.Sessions == nil {
		panic("middleware: Config.Sessions is nil: make a store with sessionstore.New")
	}
	groups := lo.Groups()
	if wrong := cfg.validate(groups); wrong != "" {
		panic("middleware: " + wrong)
	}
	m := &mount{cfg: cfg.withDefaults(groups), lender: ln, layout: lo}
	m.changes, _ = cfg.Sessions.(changes)
	return m
}

func (m *mount) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.serve(w, r, next)
	})
}

// serve seats the request, runs the handler and clears the seat. Nothing here
// recovers a panic: the deferred calls do their work and the panic goes on.
func (m *mount) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	s := m.newSeat(r.Context())
	defer s.end()
	if !m.cfg.Lazy {
		if _, err := s.acquire(s.ctx); err != nil {
			m.refuse(w, r, err)
			return
		}
	}
	a := &answer{seat: s, base: w, original: m.remember(s, w, r)}
	a.serve(next, r.WithContext(s.ctx))
	if a.held != nil {
		m.replay(a, next)
	}
}
