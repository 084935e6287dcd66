package shardrouter

// Verdict is what an error means for the shard that gave it.
type Verdict int

// The verdicts.
const (
	// VerdictStatement: the statement's own error; it says nothing about the shard.
	VerdictStatement Verdict = iota
	// VerdictUnreachable: no connection, and nothing ran.
	VerdictUnreachable
	// VerdictReadOnly: the server takes no writes; the statement did not run.
	VerdictReadOnly
	// VerdictBusy: the server or the pool is full.
	VerdictBusy
	// VerdictMisconfigured: the server refuses the account or the database.
	VerdictMisconfigured
	// VerdictLost: the connection went while something was under way.
	VerdictLost
	// VerdictRolledBack: the server has rolled the transaction back.
	VerdictRolledBack
	// VerdictNeutral: the caller gave up; nothing is known about the shard.
	VerdictNeutral
)

func (v Verdict) String() string { return "" }
