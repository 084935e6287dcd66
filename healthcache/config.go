package healthcache

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// ProbeFunc asks one shard how it is: a full handshake and a query, on a
// connection of its own. It must return soon after ctx is done; until it has
// returned, that shard is not probed again and Close waits. The bound on a
// probe can be shortened while it runs, so ctx carries no deadline that could
// be read from it: it is cancelled when the time is over.
type ProbeFunc func(ctx context.Context, shard string) Result

// Config configures a [Cache]. Shards and Probe are required; the zero value
// of everything else is a documented default.
type Config struct {
	// Shards are the names to watch, each once: letters, digits, '_', '-' and
	// '.', at most 64 bytes.
	Shards []string
	// Nodes are the addresses, host:port, of the nodes of each shard that has
	// several: those shards for which it is recorded which node takes the writes
	// of the whole fleet; see [Cache.Writer].
	Nodes map[string][]string
	// Probe asks one shard how it is. Required. It is called by several
	// goroutines at once, but never twice at once for one shard.
	Probe ProbeFunc
	// Redis shares what is known with the other instances. Nil: this instance
	// stands alone and probes every shard itself. The cache never closes it.
	Redis redis.UniversalClient
	// Interval between two probes of a shard; Redis is asked twice in it what is
	// new. Knowledge lives for three of them. Default 1s, at least 10ms.
	Interval time.Duration
	// ProbeTimeout bounds a periodic probe and one that Check asked for.
	// Default 3s.
	ProbeTimeout time.Duration
	// SuspicionTimeout bounds a probe that a suspicion asked for, and the one
	// that confirms a failed probe. Default 1s, or ProbeTimeout where that is
	// shorter; it cannot be longer than ProbeTimeout.
	SuspicionTimeout time.Duration
	// Instance names this process in the health keys. Default host:pid and a
	// random suffix.
	Instance string
	// Logger takes one line per change of state, and one when Redis goes and
	// comes back. Default slog.Default().
	Logger *slog.Logger
	// OnChange is called for every change of state and of drains, in order,
	// without locks, by one goroutine of the cache. Snapshot then shows what is
	// told, or something newer. It must neither block nor call Close. Optional.
	OnChange func(Change)
	// OnWriter is called when the record of a shard's writer was read or written
	// and names another node, or another epoch, than before. It is called without
	// locks by whoever read it, and must neither block nor call Close. Optional.
	OnWriter func(shard string, w Writer)
}

// The defaults of Config, and the bounds on what it may say.
const (
	defaultInterval         = time.Second
	defaultProbeTimeout     = 3 * time.Second
	defaultSuspicionTimeout = time.Second
	minInterval             = 10 * time.Millisecond
	maxRefreshTimeout       = time.Second
)

// shardName keeps names out of the syntax of keys: a colon separates, and
// braces choose a slot of a Redis Cluster.
var shardName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// withDefaults fills in what cfg leaves open.
func (cfg Config) withDefaults() Config {
	cfg.Interval = cmp.Or(cfg.Interval, defaultInterval)
	cfg.ProbeTimeout = cmp.Or(cfg.ProbeTimeout, defaultProbeTimeout)
	cfg.SuspicionTimeout = cmp.Or(cfg.SuspicionTimeout, min(defaultSuspicionTimeout, cfg.ProbeTimeout))
	cfg.Instance = cmp.Or(cfg.Instance, defaultInstance())
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return cfg
}

// validate reports everything that is wrong with cfg at once.
func (cfg Config) validate() error {
	errs := []error{validateShards(cfg.Shards), validateNodes(cfg.Shards, cfg.Nodes)}
	if cfg.Probe == nil {
		errs = append(errs, errors.New("healthcache: Config.Probe is nil: give the function that probes a shard"))
	}
	if cfg.Interval < minInterval {
		errs = append(errs, fmt.Errorf("healthcache: Config.Interval is %v: it must be at least %v", cfg.Interval, minInterval))
	}
	if cfg.ProbeTimeout < 0 {
		errs = append(errs, fmt.Errorf("healthcache: Config.ProbeTimeout is %v: it must be positive", cfg.ProbeTimeout))
	}
	if cfg.SuspicionTimeout < 0 || cfg.SuspicionTimeout > cfg.ProbeTimeout {
		errs = append(errs, fmt.Errorf("healthcache: Config.SuspicionTimeout is %v: it must be positive and at most ProbeTimeout (%v)",
			cfg.SuspicionTimeout, cfg.ProbeTimeout))
	}
	return errors.Join(errs...)
}

func validateNodes(shards []string, nodes map[string][]string) error {
	var errs []error
	for shard := range nodes {
		if !slices.Contains(shards, shard) {
			errs = append(errs, fmt.Errorf("healthcache: Config.Nodes: %.64q is not in Config.Shards", shard))
		}
	}
	return errors.Join(errs...)
}

func validateShards(shards []string) error {
	if len(shards) == 0 {
		return errors.New("healthcache: Config.Shards is empty: name at least one shard")
	}
	var errs []error
	seen := make(map[string]bool, len(shards))
	for _, shard := range shards {
		if !shardName.MatchString(shard) {
			errs = append(errs, fmt.Errorf("healthcache: Config.Shards: %q is not a shard's name: use letters, digits, '_', '-' and '.'", shard))
		}
		if seen[shard] {
			errs = append(errs, fmt.Errorf("healthcache: Config.Shards: %q stands there twice", shard))
		}
		seen[shard] = true
	}
	return errors.Join(errs...)
}

// life is how long knowledge counts after it was gained.
func (cfg Config) life() time.Duration { return 3 * cfg.Interval }

// late is for how long after a new generation of the fleet's keys began an
// instance writes the drains again that it knows from the one before.
func (cfg Config) late() time.Duration { return 10 * cfg.Interval }

// refreshTimeout bounds one exchange with Redis.
func (cfg Config) refreshTimeout() time.Duration { return min(cfg.Interval, maxRefreshTimeout) }

// pace is the least time between the starts of two probes of one shard that
// were asked for, so that a storm of suspicions does not become one of probes.
func (cfg Config) pace() time.Duration { return cfg.Interval / 20 }

// turn is the time between two exchanges with Redis: a beat and a peek in an
// interval, so that what one instance finds in Redis, all have heard of within an
// interval.
func (cfg Config) turn() time.Duration { return cfg.Interval / 2 }

// hearing is how long witnesses have to speak: the time of a probe, and until the
// exchange by which they learn that they are asked if no hint gets through.
func (cfg Config) hearing() time.Duration { return cfg.SuspicionTimeout + cfg.turn() }

// retrial is how long a shard is down for the fleet on this instance's word
// before witnesses are called again.
func (cfg Config) retrial() time.Duration { return 10 * cfg.Interval }

func defaultInstance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d:%s", host, os.Getpid(), rand.Text()[:6])
}
