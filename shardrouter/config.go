package shardrouter

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
)

// Config configures a [Router]. Shards is required; the zero value of
// everything else is a documented default. It is a value: neither [New] nor
// anything else in this package changes the one it was given, so several
// goroutines may read it.
type Config struct {
	// Shards in rotation order.
	Shards []Shard
	// Policy picks the shard of a first assignment. Default PolicyWeighted.
	Policy Policy
	// Rotation picks where a route goes when its shard fails. Default
	// RotationNext.
	Rotation Rotation
	// RotateTo limits the targets of a rotation. Default RotateToAny.
	RotateTo RotateTo
	// Copies is what proves that shards hold the same rows. Default
	// CopiesCluster.
	Copies CopiesProof
	// ConnectTimeout bounds one connection attempt, handshake included.
	// Default 5s.
	ConnectTimeout time.Duration
	// ReadTimeout and WriteTimeout are the driver's, for every DSN that sets
	// none. Defaults 30s and 10s.
	ReadTimeout, WriteTimeout time.Duration
	// ProbeTimeout bounds a periodic probe, and the check of the next shard in
	// a rotation. It cannot be longer than AcquireTimeout. Default 3s, or
	// AcquireTimeout where that is shorter.
	ProbeTimeout time.Duration
	// AcquireTimeout is the budget of all attempts of one request together.
	// Default 10s.
	AcquireTimeout time.Duration
	// BusyTimeout bounds the wait for a connection of a shard that is full. It
	// cannot be longer than AcquireTimeout. Default 3s, or AcquireTimeout where
	// that is shorter.
	BusyTimeout time.Duration
	// MaxWaiting bounds how many requests wait for a connection of one full
	// shard; the next one is refused at once. Default four times the shard's
	// MaxConns.
	MaxWaiting int
	// Ramp is how many connections the fleet may open to a shard in the first
	// second after its recovery, or after a drain has ended. In the second second
	// it may open twice as many, then four times, until that no longer matters.
	// Each instance takes an equal part. Default 50.
	Ramp int
	// HoldTimeout is the longest hold, counted from the start of the outage.
	// HoldNone: no request is held. Default 60s.
	HoldTimeout time.Duration
	// HoldMax bounds the requests held at once, per shard. Default 1000.
	HoldMax int
	// HealthInterval is the time between two probes of a shard. Default 1s.
	HealthInterval time.Duration
	// Failback is how long the home of a session that was rotated away has to be
	// up, in the eyes of this instance and without interruption, before the
	// session goes back there. Those of one home go back over as long again.
	// Each goes back once, and if it is rotated again, it stays. Default 0:
	// never.
	Failback time.Duration
	// OutcomeRetention is how long outcome rows are kept, and so how long a
	// repeat with the same Key gets the first answer; see [TxAnswer]. At least
	// twice ReadTimeout, AcquireTimeout and HoldTimeout together, and more than the
	// longest transaction takes. Default 24h.
	OutcomeRetention time.Duration
	// Redis shares health among instances. Nil: this instance stands alone.
	Redis redis.UniversalClient
	// Instance names this process in the health keys. Default host, process id
	// and a random suffix.
	Instance string
	// Logger takes changes of state, failed attempts and leaks; never a
	// password or a DSN. Default slog.Default().
	Logger *slog.Logger
	// Observer is told what happens. Optional.
	Observer Observer
	// Prepare is called by [Router.Reload] with a connection of each shard that
	// is added, up, and about to take players, to make its tables for one. An
	// error ends the Reload. New does not look at it. Optional.
	Prepare func(ctx context.Context, shard string, conn *sql.Conn) error
	// Classify overrides the verdict on an error. It gets the verdict that the
	// library would give. Optional.
	Classify func(err error, verdict Verdict) Verdict
}

// Shard configures one routing target.
type Shard struct {
	// Name is the value of db_server: [a-z][a-z0-9_]{0,31}.
	Name string
	// DSN is a data source name of github.com/go-sql-driver/mysql. Several
	// nodes of one shard stand in one address: tcp(a:3306,b:3306).
	DSN DSN
	// Weight is the share of first assignments. Default 1; WeightNone: no
	// first assignments, and a rotation target only when nothing else is left.
	Weight int
	// Group is the set of shards among which a session may move. Default
	// DefaultGroup.
	Group string
	// OnFailure says what happens to requests when the shard fails. Default
	// OnFailureRotate for a shard of one node, OnFailureHoldFirst for a shard
	// of several.
	OnFailure OnFailure
	// MaxConns bounds the connections to the shard. Default 50.
	MaxConns int
}

// HoldNone is the HoldTimeout of a router that holds no requests.
const HoldNone time.Duration = -1

// DefaultGroup is the group of shards that name none.
const DefaultGroup = "default"

// WeightNone is the Weight of a shard that takes no new players.
const WeightNone = -1

// Policy picks the shard of a first assignment.
type Policy string

// The policies of first assignment.
const (
	PolicyWeighted   Policy = "weighted"    // smooth weighted round-robin
	PolicyRoundRobin Policy = "round_robin" // weights ignored, except WeightNone
	PolicyLeastConns Policy = "least_conns" // fewest leases in use for its weight
)

// Rotation orders the other shards of a group when a route's shard fails.
type Rotation string

// The orders of rotation.
const (
	RotationNext   Rotation = "next"   // the next one in the configured list
	RotationSpread Rotation = "spread" // by a hash of the session, so that no neighbour takes all
)

// RotateTo limits the targets of a rotation.
type RotateTo string

// The limits of rotation.
const (
	RotateToAny    RotateTo = "any"    // every shard of the group
	RotateToCopies RotateTo = "copies" // only shards proved to hold the same rows
)

// CopiesProof is what proves that shards hold the same rows; see
// [Router.Copies].
type CopiesProof string

// The proofs that shards are copies.
const (
	// CopiesCluster: their servers are members of one Galera cluster, or of one
	// group of MySQL group replication. Other shards are never copies.
	CopiesCluster CopiesProof = "cluster"
	// CopiesMarker: besides, shards of one group that show each other's markers:
	// rows that each of them writes anew in every HealthInterval, into the table
	// of MarkerDDL. It is for shards of which you know that a commit on one is
	// on the others before it is answered, such as servers on shared storage. The
	// markers tell when that is not, or no longer, so. What they cannot tell
	// is a replication in both directions that is usually quick and not
	// synchronous: do not claim that for it.
	CopiesMarker CopiesProof = "marker"
)

// OnFailure says what happens to a request whose shard fails.
type OnFailure string

// What may happen when a shard fails.
const (
	// OnFailureRotate: go on to the next shard of the group; when none of them
	// serves, wait for one.
	OnFailureRotate OnFailure = "rotate"
	// OnFailureHold: wait for the shard to have a writable node again, and
	// never go on to another.
	OnFailureHold OnFailure = "hold"
	// OnFailureHoldFirst: wait for the shard, and go on to the next one when
	// that has taken too long.
	OnFailureHoldFirst OnFailure = "hold_first"
	// OnFailureFail: answer 503.
	OnFailureFail OnFailure = "fail"
)

// DSN is a data source name of github.com/go-sql-driver/mysql. It prints
// without its password and parameters: in every verb of fmt, in slog and as a
// JSON value. Go leaves two ways past that, which have to be avoided: printing
// a struct that holds it in an unexported field, and a JSON object that has it
// for a key. string(d) is the whole name.
type DSN string
