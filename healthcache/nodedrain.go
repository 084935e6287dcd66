package healthcache

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// NodeDrain is an operator's order that one node of a shard take no new work.
type NodeDrain struct {
	// Reason is the text of the order.
	Reason string
	// Since is when this instance learnt of it.
	Since time.Time
}

// NodeDrained returns the order that stands for a node, if there is one. It reads
// memory only.
func (c *Cache) NodeDrained(shard, addr string) (NodeDrain, bool) {
	e := c.ledger.entry(nodeDrainKey(shard, addr))
	if e.value == "" || !e.until.IsZero() && !time.Now().Before(e.until) {
		return NodeDrain{}, false
	}
	return NodeDrain{Reason: clip(e.value), Since: e.since}, true
}

// DrainNode orders that a node of a shard take no new work, until UndrainNode or
// until ttl is over (0: no end): as Drain does for a shard. It fails for a node
// that is not in Config.Nodes, without a reason, with a negative ttl, and when
// Redis does not take the order; then nothing changes.
func (c *Cache) DrainNode(ctx context.Context, shard, addr, reason string, ttl time.Duration) error {
	if err := c.knownNode(shard, addr); err != nil {
		return err
	}
	if ttl < 0 || reason == "" {
		return fmt.Errorf("healthcache: drain %s of %s: it needs a reason, and a ttl that is not negative", addr, shard)
	}
	key, now := nodeDrainKey(shard, addr), time.Now()
	if c.fleet != nil {
		if err := c.fleet.client.Set(ctx, key, reason, ttl).Err(); err != nil {
			return fmt.Errorf("healthcache: drain %s of %s: %w", addr, shard, err)
		}
		c.fleet.hint(ctx, shard)
		c.ledger.learn(key, reason, now)
		return nil
	}
	c.ledger.learn(key, reason, now)
	if ttl > 0 {
		c.ledger.limit(key, now.Add(ttl))
	}
	return nil
}

// UndrainNode ends the drain of a node; to end one that is not there is no
// error. It fails for a node that is not in Config.Nodes, and when Redis does not
// take the order.
func (c *Cache) UndrainNode(ctx context.Context, shard, addr string) error {
	if err := c.knownNode(shard, addr); err != nil {
		return err
	}
	key, now := nodeDrainKey(shard, addr), time.Now()
	if c.fleet != nil {
		if err := c.fleet.client.Del(ctx, key).Err(); err != nil {
			return fmt.Errorf("healthcache: undrain %s of %s: %w", addr, shard, err)
		}
		c.fleet.hint(ctx, shard)
	}
	c.ledger.learn(key, "", now)
	return nil
}

func (c *Cache) knownNode(shard, addr string) error {
	if !slices.Contains((*c.nodes.Load())[shard], addr) {
		return fmt.Errorf("%w: %.128q of %.64q", ErrUnknownNode, addr, shard)
	}
	return nil
}
