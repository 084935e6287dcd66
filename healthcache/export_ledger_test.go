package healthcache

import "time"

// LedgerBytes is how much this instance holds of the value of a key.
func (c *Cache) LedgerBytes(key string) int { return len(c.ledger.entry(key).value) }

// LastUse is when a request last succeeded on shard.
func (c *Cache) LastUse(shard string) time.Time { return c.board.knowledgeOf(shard).lastUse() }
