package shardrouter

import (
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/healthcache"
)

// What the tests of the pure functions call.

func (c Config) WithDefaults() Config { return c.withDefaults() }
func (c Config) Validate() error      { return c.withDefaults().validate() }

func (c Config) MaxWaitingFor(s Shard) int { return c.maxWaiting(s) }

func ParseDSN(dsn DSN, dial, read, write time.Duration) ([]*mysql.Config, error) {
	return parseDSN(dsn, driverTimeouts{dial: dial, read: read, write: write})
}

type Occasion = occasion

var (
	OnConnect     = occasion{phase: phaseConnect}
	OnStatement   = occasion{phase: phaseStatement}
	OnReadOnlyTx  = occasion{phase: phaseStatement, readOnlyTx: true}
	OnCommit      = occasion{phase: phaseCommit}
	ConnectDone   = occasion{phase: phaseConnect, callerDone: true}
	StatementDone = occasion{phase: phaseStatement, callerDone: true}
	CommitDone    = occasion{phase: phaseCommit, callerDone: true}
)

func Classify(err error, at Occasion) Verdict { return classify(err, at) }

// CandidateInput is candidateInput with fields that a test can set.
type CandidateInput struct {
	Ring     []Shard
	Route    Route
	Picked   bool
	Key      string
	Health   healthcache.Snapshot
	Rotation Rotation
	RotateTo RotateTo
	Copies   func(a, b string) bool
}

func Candidates(in CandidateInput) (attempts, outOfService []string) {
	return candidates(candidateInput{
		ring: in.Ring, route: in.Route, picked: in.Picked, key: in.Key, health: in.Health,
		rotation: in.Rotation, rotateTo: in.RotateTo, copies: in.Copies,
	})
}

func Assignable(ring []Shard, group string, health healthcache.Snapshot) []Shard {
	return assignable(ring, group, health)
}

type Assigner struct{ a *assigner }

func NewAssigner(p Policy, inUse func(string) int) Assigner { return Assigner{newAssigner(p, inUse)} }
func (t Assigner) Next(present []Shard) string              { return t.a.next(present) }

var (
	ClusterID = clusterID
	ClusterOf = clusterOf
)

// Clusters is the memory of what nodes said of their cluster.
type Clusters struct{ c clusters }

func (c *Clusters) Learn(nodes ...healthcache.Node) { c.c.learn(nodes) }

func (c *Clusters) Recall(nodes ...healthcache.Node) []healthcache.Node { return c.c.recall(nodes) }

// PaceAt is when an instance with a share of the fleet's first second may open
// its n-th connection.
func PaceAt(share, phase float64, n int) time.Duration { return pace{share, phase}.at(n) }

// PaceLength is how long the pace matters to a pool.
func PaceLength(share float64, most int) time.Duration { return pace{share: share}.length(most) }

// SameRows is sameRows in the words of a log line.
func SameRows(ring []Shard, clusters map[string]string) string {
	return setsText(sameRows(ring, func(shard string) string { return clusters[shard] }))
}

// Homecoming is homecoming with fields that a test can set.
type Homecoming struct {
	Route  Route
	Key    string
	Home   Shard
	View   healthcache.View
	UpFor  time.Duration
	Stable time.Duration
}

func (h Homecoming) Due() bool {
	return homecoming{route: h.Route, key: h.Key, home: h.Home, view: h.View, upFor: h.UpFor, stable: h.Stable}.due()
}
