package healthcache

// LedgerBytes is how much this instance holds of the value of a key.
func (c *Cache) LedgerBytes(key string) int { return len(c.ledger.entry(key).value) }
