package healthcache

// healthKey, drainKey and leaseKey name the keys of a shard. The braces put
// the lease into the slot of the health key, so that one script may touch both
// on a Redis Cluster.
func healthKey(shard string) string { return "db:health:" + shard }
func drainKey(shard string) string  { return "db:drain:" + shard }
func leaseKey(shard string) string  { return "db:probe:{db:health:" + shard + "}" }

// writerKey says which node of a shard takes the writes. movedKey, in its slot,
// marks for some moments that the record went to another node.
func writerKey(shard string) string { return "db:writer:" + shard }
func movedKey(shard string) string  { return "db:moved:{db:writer:" + shard + "}" }

// ledgerKeys are the keys of shards of several nodes that each beat looks at.
func ledgerKeys(nodes map[string][]string) (keys []string) {
	for shard, addrs := range nodes {
		keys = append(keys, writerKey(shard))
		for _, addr := range addrs {
			keys = append(keys, nodeDrainKey(shard, addr))
		}
	}
	return keys
}

// nodeDrainKey is the drain key of one node.
func nodeDrainKey(shard, addr string) string { return drainKey(shard) + ":" + addr }

// restoredKey says in which generation of the fleet's keys the drain of a shard
// was written again, in the slot of the drain key.
func restoredKey(shard string) string { return "db:restored:{db:drain:" + shard + "}" }

// The fleet's own keys. The braces put them into one slot. Whatever of another
// type stands in their place is swept away.
const (
	// membersKey is a sorted set of the instances that live, each with the
	// moment until which it counts, in Redis's milliseconds.
	membersKey = "db:{fleet}:members"
	// changesKey is a sorted set of the shards whose keys changed, each with
	// the number of its last change.
	changesKey = "db:{fleet}:changes"
	// counterKey is the change counter. It begins at the moment of its making, in
	// Redis's milliseconds, so that no number comes twice when it was lost.
	counterKey = "db:{fleet}:counter"
	// generationKey says when the fleet's keys were first written, and who did.
	// Its absence tells that Redis has lost everything.
	generationKey = "db:{fleet}:generation"
)

// everyShard stands in changesKey for all shards.
const everyShard = "*"

// mailKey is the set of shards that an instance is asked to testify about, and
// of the leases that it is offered.
func mailKey(token string) string { return mailPrefix + token }

const mailPrefix = "db:{fleet}:mail:"

// witnessKey is a hash of what instances testified about a shard.
func witnessKey(shard string) string { return "db:{fleet}:witness:" + shard }

// hintChannel carries hints that something is worth a look before the next beat:
// names of shards, or a call for witnesses.
const hintChannel = "db:changes"
