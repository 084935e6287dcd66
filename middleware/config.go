package middleware

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/shardhop/shardhop/shardrouter"
)

const (
	defaultMaxRuns      = 2
	defaultReplayBuffer = 64 << 10
)

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
	// RetryAfter is what a 503 tells the client to wait, rounded up to whole
	// seconds. Default 1s.
	RetryAfter time.Duration
	// MaxRuns bounds how often the handler may run for one request; see the
	// package documentation on replay. Default 2; 1 turns replay off.
	MaxRuns int
	// ReplayBuffer is how many bytes of a failed answer's body are held back
	// until it is known whether the handler runs again; a longer answer goes
	// out as it is. Default 64 KiB.
	ReplayBuffer int
	// ErrorHandler answers when no connection can be had, and for WriteError.
	// err names shards and nodes: it is for the log only, where it already
	// stands. Default: 503 as application/problem+json, or a maintenance page
	// for browsers.
	ErrorHandler func(w http.ResponseWriter, r *http.Request, err error)
	// Logger takes rotations, detours and refusals. Default slog.Default().
	Logger *slog.Logger
	// Observer is told what happens to sessions. Optional.
	Observer Observer
}

// Observer is told what the middleware does with the routes of sessions. Every
// field is optional. The functions are called without locks from the
// goroutines of requests, and must be safe for that and return soon.
type Observer struct {
	// Rotated is called when a session was moved to another shard of its group
	// and the move is stored.
	Rotated func(from, to string)
	// Returned is called when a session went back to its home and that is
	// stored.
	Returned func(from, to string)
	// Detour is called when a request is served by another shard than its
	// session names and the move could not be stored. from is empty for a
	// session that had no shard yet.
	Detour func(from, to string, err error)
	// Reassigned is called when a session names a shard that is not
	// configured, or is in another group by now; to serves it instead.
	Reassigned func(unknown, to string)
	// Replayed is called when a request is about to run again, on the shard to,
	// since its connection to from went.
	Replayed func(from, to string)
	// Refused is called when a request is answered for want of a connection, by
	// the middleware or by WriteError; not for clients that went away.
	Refused func(err error)
}

// validate returns what is wrong with cfg and how to mend it; "" if nothing.
func (cfg *Config) validate(groups []string) string {
	switch {
	case cfg.Group != "" && !slices.Contains(groups, cfg.Group):
		return fmt.Sprintf("Config.Group is %q, which no shard is in: use one of %s", cfg.Group, strings.Join(groups, ", "))
	case cfg.ClaimTimeout < 0:
		return "Config.ClaimTimeout is negative: leave it zero for the default"
	case cfg.RetryAfter < 0:
		return "Config.RetryAfter is negative: leave it zero for the default"
	case cfg.MaxRuns < 0:
		return "Config.MaxRuns is negative: leave it zero for the default, or set it to 1 to run nothing again"
	case cfg.ReplayBuffer < 0:
		return "Config.ReplayBuffer is negative: leave it zero for the default"
	}
	return ""
}

// withDefaults returns cfg with every unset field that has a default set to it.
func (cfg Config) withDefaults(groups []string) Config {
	if cfg.Group == "" && len(groups) > 0 {
		cfg.Group = groups[0]
	}
	if cfg.ClaimTimeout == 0 {
		cfg.ClaimTimeout = 2 * time.Second
	}
	if cfg.RetryAfter == 0 {
		cfg.RetryAfter = time.Second
	}
	cfg.MaxRuns = cmp.Or(cfg.MaxRuns, defaultMaxRuns)
	cfg.ReplayBuffer = cmp.Or(cfg.ReplayBuffer, defaultReplayBuffer)
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return cfg
}
