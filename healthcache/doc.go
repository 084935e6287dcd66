// Package healthcache knows which shards can be used. It probes them, shares
// what it finds with the other instances through Redis, and answers from
// memory, so that no request waits for a probe or for Redis.
//
// # How it works
//
// One goroutine per shard owns its probing: one probe at a time, each with a
// time limit, so a frozen shard delays no other and collects no heap of
// probes. In the whole fleet one instance probes a shard periodically. It holds
// the shard's probe lease in Redis and writes what it finds to the health key, by
// a script that looks at the lease, so that a prober that was paused cannot
// write when it wakes. The lease ends three intervals after its holder was last
// heard of and is handed back by Close. It is never taken from a holder, but one
// who holds more than its part offers some to those who hold least, and goes on
// probing until they have taken over.
//
// Once an interval each instance beats: one script, one round trip, that says
// "alive", extends the leases held, renews the records that say what they said
// before, and brings back what is new. A change counter tells which shards' keys
// have changed; only these are read. Half an interval later it peeks: at the
// counter, and at whether its shards' drain keys came or went; if so, it beats at
// once. Every tenth interval Redis is asked for a digest of all keys, and those are
// read that it does not fit. What an operator does with redis-cli is noticed by the
// shard's prober, which then counts it as a change: so all know within an
// interval. A hint on the channel db:changes makes everybody beat at
// once. It is never more than a hint, and nothing waits for one.
//
// An instance that neither holds the lease nor hears from a prober for three
// intervals probes for itself. That covers a Redis that is away, frozen or
// full of nonsense, a lease that nobody alive holds, and Config.Redis being
// nil. The first probe after Start waits for one refresh, to learn who has the
// lease: a moment with a healthy Redis, and never longer than an interval or a
// second, whichever is less. Without Redis it begins at once.
//
// [Cache.Suspect] tells of a failed request. That alone is no sentence: the
// shard is Suspect in this instance's eyes while an immediate probe judges.
// [Cache.Settle] waits for the judgement, and [Cache.Check] asks for a probe
// without suspicion, for the case that no better shard is left.
// [Cache.Succeeded] tells of the opposite: a down that is read in Redis makes an
// instance that just used the shard look for itself, not run. To any other it is
// hearsay (View.Hearsay) until [Cache.Look] has borne it out, once for each time
// that the shard goes down: nothing is sent there, and nothing moves for good.
//
// # Witnesses
//
// An instance whose own probes find a shard down acts on it, and asks others: the
// shard's prober and up to eleven more, chosen among the living by rendezvous,
// the same for every accuser. They look at once and give their word. One who
// reaches the shard outweighs all who do not. Who does not answer in the time of a
// probe and a beat abstains, as does who knows no such shard.
//
//	own probes say Down ──► asked ──► all agree, or nobody can say ──► the lease's
//	                          │                                        holder shares it
//	                          └─────► one reaches it ──► down for this instance alone
//
// Until the answer, and while it is a contradiction, View.Contested is set: what
// is served elsewhere because of it should not be stored. A contradicted
// instance goes on probing for itself until its path is whole, and leaves the
// lease to the others, who have the better view. For the fleet the shard stays
// up, or suspect until the next prober writes. While a shard is down for the fleet,
// its prober calls witnesses again every tenth interval, so that a word that was
// believed because nobody answered does not stand for ever.
//
// # States
//
//	              one good probe
//	┌─────────┐ ─────────────────► ┌─────────┐ ── probe bad ─────► ┌─────────┐
//	│ Unknown │                    │   Up    │                     │ Suspect │
//	└─────────┘                    └─────────┘ ◄─── probe good ─── └─────────┘
//	     │                           ▲     │                            │
//	     │        two good in a row  │     │  request failed            │ the probe that
//	     │ one bad                   │     │  and probe bad             │ follows at once
//	     │                           │     ▼                            │ bad too
//	     │                         ┌─────────┐                          │
//	     └───────────────────────► │  Down   │ ◄────────────────────────┘
//	                               └─────────┘
//
//	ReadOnly, Misconfigured: entered from every state by one probe that finds
//	    so, left like Down: two good probes in a row, or a bad one to Down.
//	Busy: entered from every state by one probe that finds so. It is load and
//	    not death: entered from Up it is left like Up, by one good probe; on the
//	    way back from Down the two good probes are still to come.
//
// A shard that falls again soon stays down longer than two good probes take: two
// intervals the second time, then twice as long each time, up to sixty, give or
// take a fifth; one fall is forgotten for sixty intervals without another. The
// count is in the record, so a new prober goes by it too.
//
// Draining is no state of a probe: it is how Up is shown while an operator's
// order stands. A success that [Cache.Check] waited for needs no second one and
// no patience.
// Unknown means that nobody knows anything fresh, and to a router it means: try
// it. A drain on a shard that is not Up leaves the state as it is, and shows in
// View.Drained.
//
// # Writers
//
// For a shard of several nodes (Config.Nodes) the key db:writer:<shard> says which
// of them takes the writes of the whole fleet. Every beat brings the record if it
// has changed, and confirms it if not, so [Cache.Writer] can tell a record that
// counts from one that may be out of date. [Cache.MoveWriter] replaces it by a
// script if it still is what the caller knew, word for word; who comes second gets
// the record of who was first. [Cache.WriterRead] says when it was certainly still
// that, so that an instance can tell how long it may go by it. Which node it should be is for the caller to say:
// see package shardrouter.
//
// # What is authoritative
//
//   - This instance's own probes, for three intervals after each (while the
//     next one runs, until it ends): an instance that sees a shard with its own
//     eyes is not talked out of it by Redis.
//   - After that the health key, for as long as its TTL, which is three
//     intervals too. Its holder extends it together with the lease, so that a
//     record outlives a slow probe but not its prober. Dates in it are Redis's,
//     and no host's clock is compared with them; dates more than a minute from
//     Redis's clock were not written by this fleet. Dates of own results are by
//     this host's clock.
//   - For drains the drain key alone.
//
// A key that is missing, of another type, not JSON, with unknown states, dates
// from elsewhere or of absurd size says nothing: Unknown. No more of a value is
// fetched than shows that it is too long. Addresses in a record are for people to
// read; nothing is ever dialled because of them.
//
// Only the holder of the lease writes the health key, and "down" only when the
// witnesses agree. Whoever finds a shard down without holding the lease has the
// holder look at once, as one of the witnesses.
//
// # When things fail
//
//   - A server dies: its refusal is confirmed by a second probe and by witnesses
//     at once, so the key says down within an interval and a moment. A frozen one
//     takes ProbeTimeout and SuspicionTimeout, or SuspicionTimeout alone where a
//     request reports it, and as long again for the witnesses.
//   - The prober dies: its record and lease end after three intervals, its place
//     among the living a quarter later, and the next beat of another instance
//     notices and takes over, where it continues the
//     history that it read. That holds for its own successor too: until then a
//     process started anew after a crash reads what its predecessor wrote.
//   - Redis is away or frozen: what was read lives for three intervals, then
//     every instance probes for itself, drains stay as last seen, and no caller
//     waits. When Redis is back, one instance gets the lease. Each call has the
//     time of one refresh; a cluster client is bound by its own timeouts.
//   - Redis takes no writes, as a replica before its promotion: what stands in it
//     is read and believed, and nobody probes for that reason.
//   - Redis lost everything: the holder takes its lease again and writes its
//     record, with the old date of the state. The key of the fleet's generation is
//     gone too, which tells that the drains were lost and not ended: those last
//     seen are written again with what is left of their time. An instance that
//     comes later than ten intervals finds a generation that is not new, and
//     believes what it finds. A drain key alone that is missing was deleted.
//   - Hints do not get through: everything takes up to an interval.
//   - This process is paused: its lease ends and another instance takes it.
//
// # With redis-cli
//
//	GET db:health:server_1                  what the fleet thinks, since when, why, and who found out
//	SET db:drain:server_1 "new disks"       no new work, seen by all instances within an interval
//	SET db:drain:server_1 "…" EX 3600       the same for an hour
//	DEL db:drain:server_1                   end the drain
//	SET db:drain:server_1:10.0.0.1:3306 "…" no new work on one node of several
//	PUBLISH db:changes server_1             have everybody look at it now
//	GET "db:probe:{db:health:server_1}"     which instance probes it
//	ZRANGE "db:{fleet}:members" 0 -1        the instances that live
//	HGETALL "db:{fleet}:witness:server_1"   what witnesses said in the last moments
//	GET db:writer:server_1                  the node that takes the writes, since when, why
//	DEL db:health:server_1                  forget it; the next beat writes it again
//
// Setting a health key by hand does not last: the next beat overwrites it.
package healthcache
