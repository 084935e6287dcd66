package healthcache

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Cache knows the health of every shard. Its methods are safe for use by
// several goroutines. Before Start nothing is probed: Settle and Check then
// wait for their contexts.
type Cache struct {
	cfg   Config
	board *board
	fleet *fleet // nil without Redis
	// ledger has the records of writers and the drains of nodes.
	ledger *ledger
	nodes  atomic.Pointer[map[string][]string] // as Config.Nodes

	starting, closing sync.Once
	stop              context.CancelFunc
	working           sync.WaitGroup // probers, refresher, reporter, listener, accusers
	telling           sync.WaitGroup // the goroutine that passes changes on
	told              chan struct{}  // closed when no more changes will come

	// changing guards the rest; held by Start, SetShards and Close.
	changing sync.Mutex
	running  context.Context // of what works; nil before Start
	probers  map[string]*probing
}

// New returns a cache that knows nothing yet: every shard is Unknown until
// Start has let it look. It fails when cfg is malformed, and does no I/O.
func New(cfg Config) (*Cache, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Shards = append([]string(nil), cfg.Shards...)
	token := cfg.Instance + "/" + rand.Text()[:tokenEnd]
	c := &Cache{cfg: cfg, board: newBoard(cfg, token), told: make(chan struct{}), probers: map[string]*probing{}}
	c.nodes.Store(&cfg.Nodes)
	c.ledger = newLedger(ledgerKeys(cfg.Nodes), c.heard)
	if cfg.Redis != nil {
		c.fleet = newFleet(cfg.Redis, token, cfg, c.ledger)
	}
	return c, nil
}

// Start begins probing and refreshing, and returns at once. Call it once;
// further calls, and calls after Close, do nothing.
func (c *Cache) Start() {
	c.starting.Do(func() {
		c.changing.Lock()
		defer c.changing.Unlock()
		ctx, cancel := context.WithCancel(context.Background())
		c.stop, c.running = cancel, ctx
		c.board.begin()
		c.startProbers(c.board.watched())
		if c.fleet != nil {
			c.working.Go(func() { c.refreshing(ctx) })
			c.working.Go(func() { c.reporting(ctx) })
			c.working.Go(func() { c.listening(ctx) })
		}
		c.telling.Go(func() { c.board.notices.run(c.told, c.pass) })
	})
}

// Close cancels running probes, hands the leases back, passes on the changes
// that are left, and returns when every goroutine of the cache has ended. What
// is known stays readable. A frozen Redis delays it by two exchanges at most. It
// is idempotent, and must not be called by OnChange.
func (c *Cache) Close() {
	c.closing.Do(func() {
		c.board.close()
		c.starting.Do(func() {}) // a later Start does nothing
		if c.stop != nil {
			c.stop()
		}
		c.awaitChange()
		c.working.Wait()
		c.board.abandon()
		if c.fleet != nil {
			c.release()
		}
		close(c.told)
		c.telling.Wait()
	})
}

// awaitChange waits for a SetShards that is under way, which sees the end of the
// cache's context soon.
func (c *Cache) awaitChange() {
	c.changing.Lock()
	defer c.changing.Unlock()
}

// Snapshot returns what is known now. It reads memory only, and the map must
// not be written to.
func (c *Cache) Snapshot() Snapshot { return *c.board.snapshot.Load() }

// View returns what is known of one shard; the zero View for a shard that is
// not watched. It reads memory only.
func (c *Cache) View(shard string) View { return c.Snapshot()[shard] }

// Suspect tells of a failed request: the shard is Suspect in the eyes of this
// instance until an immediate probe, bounded by SuspicionTimeout, has judged.
// If that fails too, the shard is Down for this instance; if it succeeds, Up.
// Calls while a probe runs join it, and shorten it to the suspicion's timeout.
// A shard that this instance has itself just found unfit (Down, ReadOnly,
// Misconfigured) stays as it is and is not probed for it, and probes that are
// asked for begin at least a twentieth of the interval apart. reason must not
// hold a secret. Suspect never blocks.
func (c *Cache) Suspect(shard, reason string) { c.board.suspect(shard, reason) }

// Succeeded tells that shard was just used with success: a fresh connection was
// made, or a statement answered. For three intervals a down that only Redis
// speaks of does not count then. It costs one atomic store and never blocks.
func (c *Cache) Succeeded(shard string) {
	if k := (*c.board.index.Load())[shard]; k != nil {
		k.succeeded()
	}
}

// Known reports whether shard exists as far as the fleet can tell: it is
// watched here, or another instance, which has a newer configuration, keeps a
// live health key of that name. It reads memory only.
func (c *Cache) Known(shard string) bool {
	if _, ok := (*c.board.index.Load())[shard]; ok {
		return true
	}
	return c.board.foreign.has(shard)
}

// Instances returns how many instances of the fleet live as far as is known,
// this one included; 1 without Redis, and before it was first reached.
func (c *Cache) Instances() int { return c.board.instances() }

// Settle waits until no suspicion hangs over shard, or until ctx is done, and
// returns what is known then.
func (c *Cache) Settle(ctx context.Context, shard string) View {
	for {
		done := c.board.hanging(shard)
		if done == nil || !wait(ctx, done) {
			return c.View(shard)
		}
	}
}

// Check probes shard now, or joins the probe that runs, waits for it or until
// ctx is done, and returns what is known then. A probe that ran already and
// fails is followed by one more: it may have begun before the shard was back. A success outweighs whatever
// Redis says, and the second good probe that a recovery usually takes. This is
// how the last shard standing is tried. The probe is bounded by ProbeTimeout,
// since nobody has another shard to turn to; one that a suspicion shortened
// stays short. The probe goes on when ctx ends first.
func (c *Cache) Check(ctx context.Context, shard string) View {
	done, joined := c.board.check(shard)
	if done == nil || !wait(ctx, done) || !joined || suspectable(c.View(shard).State) {
		return c.View(shard)
	}
	if done, _ = c.board.check(shard); done != nil {
		wait(ctx, done)
	}
	return c.View(shard)
}

// Look has a shard probed that is unfit by hearsay, and returns at once; for any
// other it does nothing. A success outweighs the health key for three intervals,
// as that of Check does; a failure bears it out for as long as the shard stays in
// that state. The probe is bounded by SuspicionTimeout, and one answers all who
// ask meanwhile.
func (c *Cache) Look(shard string) { c.board.look(shard) }

// Drain orders every instance to give shard no new work, until Undrain or
// until ttl is over (0: no end). This instance obeys at once, the others
// within an interval. Without Redis the order binds this instance only. It
// fails for an unknown shard, a negative ttl, and when Redis does not take the
// order; then nothing changes.
func (c *Cache) Drain(ctx context.Context, shard, reason string, ttl time.Duration) error {
	if err := c.known(shard); err != nil {
		return err
	}
	if ttl < 0 {
		return fmt.Errorf("healthcache: drain %s: ttl is %v: it must be positive, or 0 for no end", shard, ttl)
	}
	var until time.Time
	if c.fleet == nil && ttl > 0 {
		until = time.Now().Add(ttl)
	}
	if c.fleet != nil {
		if err := c.fleet.setDrain(ctx, shard, reason, ttl); err != nil {
			return fmt.Errorf("healthcache: drain %s: %w", shard, err)
		}
	}
	c.board.setDrain(shard, true, reason, until)
	return nil
}

// Undrain ends a drain; to end one that is not there is no error. It fails for
// an unknown shard and when Redis does not take the order.
func (c *Cache) Undrain(ctx context.Context, shard string) error {
	if err := c.known(shard); err != nil {
		return err
	}
	if c.fleet != nil {
		if err := c.fleet.clearDrain(ctx, shard); err != nil {
			return fmt.Errorf("healthcache: undrain %s: %w", shard, err)
		}
	}
	c.board.setDrain(shard, false, "", time.Time{})
	return nil
}

func (c *Cache) known(shard string) error {
	if _, ok := (*c.board.index.Load())[shard]; !ok {
		return fmt.Errorf("%w: %.64q", ErrUnknownShard, shard)
	}
	return nil
}

// wait reports whether done came before the end of ctx.
func wait(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
