// Package healthcache knows which shards can be used. It probes them, shares
// what it finds with the other instances through Redis, and answers from
// memory, so that no request waits for a probe or for Redis.
//
// # How it works
//
// One goroutine per shard owns its probing: one probe at a time, each with a
// time limit, so a frozen shard delays no other and collects no heap of
// probes. In the whole fleet one instance probes a shard periodically. It holds
// the shard's probe lease in Redis, writes each result to the health key, and every
// other instance reads all keys once per interval, in one round trip. The
// lease ends three intervals after its holder was last heard of and is handed
// back by Close; the next refresh of any instance then takes it. It is never
// taken from a holder, and results are written by a script that looks at the
// lease, so that a prober that was paused cannot write when it wakes.
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
// Draining is no state of a probe: it is how Up is shown while an operator's
// order stands. A success that [Cache.Check] waited for needs no second one.
// Unknown means that nobody knows anything fresh, and to a router it means: try
// it. A drain on a shard that is not Up leaves the state as it is, and shows in
// View.Drained.
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
// from elsewhere or of absurd size says nothing: Unknown. Addresses in a record
// are for people to read; nothing is ever dialled because of them.
//
// Only the holder of the lease writes the health key. An instance that finds a
// shard down by a suspicion of its own acts on it alone, and looks at the fleet's
// opinion again after three intervals: its own path may be what is broken. The
// holder finds a real death at its next probe, at most an interval later.
//
// # When things fail
//
//   - A server dies: its refusal is confirmed by a second probe at once, so the
//     key says down within an interval. A frozen one takes ProbeTimeout and
//     SuspicionTimeout, or SuspicionTimeout alone where a request reports it.
//   - The prober dies: its record and lease end after three intervals, and the
//     next refresh of another instance takes over, where it continues the
//     history that it read. That holds for its own successor too: until then a
//     process started anew after a crash reads what its predecessor wrote.
//   - Redis is away or frozen: what was read lives for three intervals, then
//     every instance probes for itself, drains stay as last seen, and no caller
//     waits. When Redis is back, one instance gets the lease. Each call has the
//     time of one refresh; a cluster client is bound by its own timeouts.
//   - Redis lost everything: the holder takes its lease again and writes its
//     record at the next probe, with the old date of the state. Drains are gone.
//   - This process is paused: its lease ends and another instance takes it.
//
// # With redis-cli
//
//	GET db:health:server_1                  what the fleet thinks, since when, why, and who found out
//	SET db:drain:server_1 "new disks"       no new work, seen by all instances within an interval
//	SET db:drain:server_1 "…" EX 3600       the same for an hour
//	DEL db:drain:server_1                   end the drain
//	GET "db:probe:{db:health:server_1}"     which instance probes it
//	DEL db:health:server_1                  forget it; the next probe writes it again
//
// Setting a health key by hand does not last: the next probe overwrites it.
package healthcache
