package healthcache

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
)

// ProbeFunc asks one shard how it is: a full handshake and a query, on a
// connection of its own. It must return when ctx is done.
type ProbeFunc func(ctx context.Context, shard string) Result

// Config configures a [Cache]. Shards and Probe are required.
type Config struct {
	// Shards are the names to watch.
	Shards []string
	// Probe asks one shard how it is. Required.
	Probe ProbeFunc
	// Redis shares what is known with the other instances. Nil: this instance
	// stands alone and probes every shard itself.
	Redis redis.UniversalClient
	// Interval between two probes of a shard, and between two refreshes of the
	// snapshot. Default 1s.
	Interval time.Duration
	// ProbeTimeout bounds a periodic probe. Default 3s.
	ProbeTimeout time.Duration
	// SuspicionTimeout bounds a probe that a suspicion asked for. Default 1s.
	SuspicionTimeout time.Duration
	// Instance names this process in the health keys. Default host:pid and a
	// random suffix.
	Instance string
	// Logger takes one line per change of state. Default slog.Default().
	Logger *slog.Logger
	// OnChange is called for every change of state, without locks, and must
	// not block. Optional.
	OnChange func(Change)
}

// Cache knows the health of every shard. Its methods are safe for use by
// several goroutines.
type Cache struct{}

// New returns a cache that knows nothing yet. It fails when cfg is malformed.
func New(cfg Config) (*Cache, error) { panic("not implemented") }

// Start begins probing and refreshing. Call it once.
func (c *Cache) Start() {}

// Close stops every goroutine of the cache and waits for them. It is
// idempotent.
func (c *Cache) Close() {}

// Snapshot returns what is known now. It reads memory only.
func (c *Cache) Snapshot() Snapshot { return nil }

// View returns what is known of one shard. It reads memory only.
func (c *Cache) View(shard string) View { return View{} }

// Suspect asks for an immediate probe of shard because of reason. Calls while
// a probe runs join it, and shorten it to the suspicion's timeout. It never
// blocks.
func (c *Cache) Suspect(shard, reason string) {}

// Settle waits until no suspicion hangs over shard, or until ctx is done, and
// returns what is known then.
func (c *Cache) Settle(ctx context.Context, shard string) View { return View{} }

// Check probes shard now, or joins the probe that runs, waits for it, and
// returns what is known then. A success outweighs whatever Redis says. This is
// how the last shard standing is tried.
func (c *Cache) Check(ctx context.Context, shard string) View { return View{} }

// Drain orders every instance to give shard no new work, until Undrain or
// until ttl is over (0: no end).
func (c *Cache) Drain(ctx context.Context, shard, reason string, ttl time.Duration) error { return nil }

// Undrain ends a drain.
func (c *Cache) Undrain(ctx context.Context, shard string) error { return nil }
