// Package shardrouter lends pooled connections of several MySQL servers, and
// goes on to the next healthy one when a server cannot give any.
//
// # Words
//
// A shard is a named routing target with one or more nodes, the servers. The
// shards of one group are those among which a session may move. A route says
// which shard serves a session; a lease is the loan of one connection; an
// attempt is one try to get a lease from one shard; a verdict is what an error
// means for the shard that gave it.
//
// # From a route to a lease
//
//	route ─► candidates ─► attempt ──ok──► lease ─► release
//	             ▲            │ failed
//	             └── health ◄─┘ suspicion, probe
//
// Candidates are a pure function of the route, the configured order, the
// health snapshot and the policy: the route's own shard while it is usable,
// then the others of its group. Shards that are known to be down, read-only or
// misconfigured are left out and cost nothing. A shard that is suspected is
// waited for until its probe has decided, which takes a second at most.
//
// An attempt passes the shard's bulkhead, which bounds the leases that are out,
// the requests that wait, and their wait; then takes a connection out of the
// shard's [database/sql.DB]; one that was idle for half a second is pinged
// first. All attempts of a request share one budget, and none gets more than
// the rest of it divided by the candidates left, so a server that accepts and
// stays silent cannot use it up. What a failed attempt means is decided by
// number and type:
//
//	refused, unreachable, silent, 1053, 1129, 1047   unreachable   next candidate
//	1290 (read-only), 1792, 1836                     read-only     next candidate
//	1040, 1203, 1226, no slot in time                busy          no move; ErrBusy
//	1044, 1045, 1049                                 misconfigured next candidate
//	the caller's own context is done                 neutral       nothing is reported
//
// When no candidate is left, the shards that are said to be out of service are
// probed, the route's own first, and the first that answers serves: what stands
// in a cache never locks anybody out of servers that work.
//
// # Copies
//
// Shards whose servers are members of one Galera cluster, or online in one group
// of MySQL group replication, hold the same rows: they are copies; see
// [Router.Copies]. A probe reads of which cluster a server is a member, the
// health key tells all instances, and a server that dies counts as what it said
// last. What is not proved is no copy.
//
// [CopiesMarker] is an operator's word that shards hold the same rows by other
// means, and the check of it: in each interval one instance of the fleet
// (db:prove:<group> in Redis is whose turn it is) has every shard that is up write
// a new random marker into a row of its own, and then asks each once what it
// shows. Two are copies while each shows what the other has just written; for the
// first time they have to do so three times in a row, and once not is enough to
// part them. One that was down is asked anew before it counts again. The result
// is in db:copies:<group>, and counts for no longer than it is renewed. A marker
// proves that rows pass between two shards in both directions, now and at once. It
// does not prove that a commit waits for that, which is why it takes the
// operator's word.
//
// Shards of one group that are not all copies rotate all the same, unless
// Config.RotateTo forbids it, and are told of by a warning and by
// [Observer.Copies]: a rotated player starts on other rows.
//
// A member applies what another committed a moment later. So the first lease
// that a session gets on another shard than its route names, by rotation,
// drain, deliberate move, detour or first assignment, has waited on its
// connection until the server has applied what the cluster had committed. It
// waits within the time of the attempt, and a server that cannot catch up in it
// is passed over. A session that stays where it is waits for nothing, unless
// this instance has just served somebody beside the route: the way back from a
// detour, and the new shard of a session whose earlier request was still
// running on the old one, wait once. What other instances served is not known
// here.
//
// # Shards of several nodes
//
// A shard of a primary and standbys, or of Galera members, has one writer: the
// node that all instances write to. It is recorded in Redis, db:writer:<shard>,
// with the server's identity and an epoch, and moved by compare-and-set only.
// Connections go to the recorded node and to no other; each is asked after its
// dial who it leads to, and one to another server than the recorded one, or to
// a node that takes no writes, is a failed attempt.
//
//	every probe ──► what each node is ──► electWriter ──► compare-and-set
//	                                          ▲                 │
//	             every beat ──► record ───────┴─────────────────┘
//	                              │
//	                              └──► connections of older epochs are retired
//
// electWriter is a pure function: a recorded node that takes writes goes on; if
// it takes none and exactly one other node does, that one takes over; if several
// do, nobody is written to. While two nodes take writes, there is an alarm (log,
// health key, [Stats], [Observer]), and the recorded node goes on, unless it was
// away for a time, restarted or out of reach, and the other one has all of its
// transactions and more: then what it lost is there. The members of one Galera
// cluster are as good as each other, and the recorded one stays.
//
// The record is read with every beat, and each reading is a mandate to write to
// the recorded node for an interval and a half. Where the node before was not seen
// to take no more writes, it may thaw, or be reached by an instance that has not
// heard of the move; so that is announced first:
//
//	announced ──► every mandate is over ──► all nodes are looked at ──► completed
//	                                                  │
//	                                                  └──► taken back, if the node
//	                                                       before takes writes and
//	                                                       has what the next lacks
//
// Nobody is written to meanwhile. So no two instances write to different nodes,
// whatever they see, and what the node before confirmed is lost only if it does
// not answer. A planned switchover, and the members of one Galera cluster, need no
// announcement.
//
// Cut off from Redis an instance moves nothing, and has a mandate for as long as it
// sees itself that every other node of the shard takes no writes. Without
// Config.Redis an instance decides by itself.
//
// A node that an operator drains counts as one that takes no writes while another
// one takes them. Until then a drained writer gets no new work, for a minute at
// most, while what runs on it may come to its end; what still runs after that
// minute is cut, once another node is the writer.
//
// When the writer moves, idle connections to the old node are dropped. Leases on
// it end with their requests, but get no write through any more, and those on a
// node that answers no probe are cut. What the old node still confirms, thawed
// perhaps, is not believed: a COMMIT is settled on the new writer, like one without
// an answer, and a write outside of a transaction is of unknown outcome. A member
// of a Galera cluster is believed, since it commits nothing without the others.
//
// # Holding
//
// A request that no shard can serve, because none is there, waits for one where
// that is worth it: a shard of several nodes is waited for before another one
// serves its players, a group that is exhausted is waited for whole, and
// [OnFailure] chooses otherwise for a shard. The time counts from the start of
// the outage, not of the request, so in a longer one later requests go on, or
// fail, at once. A request that is held holds nothing: no slot of a pool, no
// connection, nothing in Redis. Their number is bounded by Config.HoldMax; the
// request's own deadline ends its hold, and [Router.EndHolds] ends all.
//
// Nothing but a proof ends a hold: a probe of this instance's own, which looks
// four times in an interval while somebody waits, or a connection that was made.
// Each shard holds by itself. Those who were held take the slots of the pool as
// they come free, in the order in which they asked, so a server that has just
// come back meets no more than its pool.
//
// # Life of a shard's connections
//
//	         attempt failed, slow or probe failed
//	┌────┐ ───────────────────────────────────► ┌─────────┐
//	│ up │                                      │ suspect │
//	└────┘ ◄─────────────────────────────────── └─────────┘
//	   ▲              probe succeeded                │ probe failed
//	   │                                             ▼
//	   │        two good probes                 ┌──────┐  every connection is
//	   └─────────────────────────────────────── │ down │  cut, nobody waits,
//	                                            └──────┘  leases end
//
// After that, and after a drain, connections come back little by little, at a
// pace that the instances of a fleet share (Config.Ramp). A lease that needs a
// connection which may not be opened yet waits, in order of arrival, as it does
// for a full pool, and gets the first that comes free or may be opened.
//
// A statement that goes without an answer for half a second raises a suspicion,
// and so does a wait for a connection in which the server answers nothing at
// all. A wait in which statements finish is load.
//
// An instance cuts connections only when its own probe has failed. What runs
// on them then fails as if the server had closed them, after the time of a
// probe instead of a read timeout. A statement that was sent a moment ago has
// until a quarter of a second after it to be answered: a server in an orderly
// shutdown refuses connections and finishes what runs.
//
// # Transactions
//
// [Tx] runs its body again when the transaction provably was not committed:
// the connection was lost before COMMIT was sent, or the server rolled it
// back. Whether COMMIT was sent is read off the socket, not guessed from an
// error.
//
// The first statement of a transaction inserts an outcome row. When COMMIT was
// sent and no certain answer came, the same row is inserted and deleted by a
// transaction of its own:
//
//	COMMIT unanswered ─► insert ──key is there─────────► it was committed
//	                       │ inserted
//	                       ▼
//	                     delete, COMMIT ──ok───────────► it was not, and never will be:
//	                                                     the body runs again
//
// The insert is the proof, not a read that finds nothing: a COMMIT that was lost
// may still be applying, and the insert waits for it. It proves something only
// on the server of the lost COMMIT, on the node that took over from it, whose
// rows are the shard's from then on, or on a shard that holds the same rows;
// where none of them can be reached, and without a row, the error is an
// [*OutcomeError], and nothing is run again.
//
// [TxAnswer] with a Key makes a repeat across requests: the row's id is then the
// key, and the row keeps the answer. The table is made at the first need, or by
// an operator with [OutcomeDDL].
//
// Rows are purged when they are older than Config.OutcomeRetention, by one
// instance of the fleet at a time: db:purge:<shard> in Redis is whose turn it is.
// Their age is told by the database's clock alone. Where two fleets use one
// database, the shorter retention counts for both.
//
// A server that has not noticed the loss of a connection keeps the locks of its
// transaction. Its thread is ended before the body runs again there, and when the
// context of a [Tx] ends in the midst of a statement, unless the server was
// restarted since and may have given the number to another. It is not ended where
// the number in the server's greeting is not the one by which the server knows the
// connection: a proxy that speaks MySQL stands between, and would take the number
// for that of another of its own connections.
//
// After the server has ended a transaction by itself, its later statements are
// refused with [ErrTxEnded], since they would run, and stay, outside of it.
//
// # How far a statement got
//
// A statement outside of [Tx] that ends because the connection went, or without
// a certain answer, gives a [*StatementError] whose [Progress] says what is
// known: it was not sent; it was, and provably only reads; it stood in a
// transaction that is rolled back; or nobody knows. The wire counts what was
// written and read, and is looked at before every statement, since a server
// that has hung up gets none. Nothing is sent again.
//
// A statement that is larger than the server takes is refused by this side, with
// [ErrTooLarge]: the server would hang up on it in mid-write, as if it had died. Its
// limit is asked of every connection, together with who it is.
//
// # What a lease promises
//
// A lease's connection is verified when it is handed out. It goes back clean:
// rows, statements and transactions that are left open are reported, and a
// connection on which they stay open is cut and never lent again. Neither is
// one on which a statement may have left something for the next holder to
// find: a BEGIN sent as text, a variable, a lock, a temporary table, another
// database, a statement that stays prepared. What a stored function leaves cannot
// be seen.
//
// While rows are open, other statements of the connection are refused with
// [ErrRowsOpen].
package shardrouter
