// Package admin is the operators' listener: what is known of the shards,
// drains, profiles, and, with embedded nodes, the lab in which one breaks
// them.
//
// It trusts nobody for being on this machine alone: a page of another site may
// make a browser send requests here. So every request has to name this
// listener as its host, which a rebound DNS name does not, and must not come
// from another origin. With a token, every call needs it as well.
package admin

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/pprof"

	"github.com/go-chi/chi/v5"

	"github.com/shardhop/shardhop/example-game/internal/problem"
	"github.com/shardhop/shardhop/example-game/internal/web"
	"github.com/shardhop/shardhop/shardrouter"
)

// Lab breaks and mends embedded nodes; see embedded.Cluster.
type Lab interface {
	// Do runs a verb on the node of a shard.
	Do(shard, verb string) error
	// State tells what the node of a shard does.
	State(shard string) string
}

// Config configures [New]. Router is required.
type Config struct {
	// Router is what is looked at.
	Router *shardrouter.Router
	// Metrics answers GET /metrics. Nil: nobody does.
	Metrics http.Handler
	// Lab breaks embedded nodes. Nil: there is no lab.
	Lab Lab
	// Token is what every call has to carry as a bearer. Empty: none.
	Token string
	// Addr is where the listener was configured to be; its host is accepted
	// as a name of the listener.
	Addr string
	// Logger takes drains and what is done in the lab. Default slog.Default().
	Logger *slog.Logger
}

// api is the handlers with what they share. It is immutable.
type api struct {
	Config
}

// New returns the handler of the listener. It fails when cfg lacks Router, and
// for an Addr without a token that others can reach.
func New(cfg Config) (http.Handler, error) {
	if cfg.Router == nil {
		return nil, errors.New("admin: Config.Router is nil")
	}
	if err := CheckExposure(cfg.Addr, cfg.Token); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	a := &api{cfg}
	return web.SecureHeaders(a.guard(a.routes())), nil
}

func (a *api) routes() http.Handler {
	r := chi.NewRouter()
	problem.Routing(r)
	r.Get("/assets/*", web.Assets().ServeHTTP)
	r.Group(func(r chi.Router) {
		r.Use(a.needToken)
		r.Get("/", web.Admin(http.StatusOK))
		r.Get("/shards", a.listShards)
		r.Put("/shards/{shard}/drain", a.drain)
		r.Delete("/shards/{shard}/drain", a.undrain)
		r.Put("/shards/{shard}/nodes/{addr}/drain", a.drain)
		r.Delete("/shards/{shard}/nodes/{addr}/drain", a.undrain)
		if a.Metrics != nil {
			r.Method(http.MethodGet, "/metrics", a.Metrics)
		}
		if a.Lab != nil {
			r.Post("/lab/{shard}/{verb}", a.breakNode)
		}
		r.HandleFunc("/debug/pprof/", pprof.Index)
		r.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		r.HandleFunc("/debug/pprof/profile", pprof.Profile)
		r.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		r.HandleFunc("/debug/pprof/trace", pprof.Trace)
		r.HandleFunc("/debug/pprof/*", pprof.Index)
	})
	return r
}
