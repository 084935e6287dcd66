package healthcache

import "time"

// State is the health of one shard in one word, as it stands in the health
// key. The zero value means unknown, and unknown means: try it.
type State string

// The states of a shard.
const (
	Unknown       State = ""              // no fresh knowledge
	Up            State = "up"            // probes succeed
	Suspect       State = "suspect"       // something failed; a probe is deciding
	Down          State = "down"          // a probe failed
	ReadOnly      State = "readonly"      // answers, but takes no writes
	Busy          State = "busy"          // answers "too many connections": load, not death
	Misconfigured State = "misconfigured" // refuses the account or the database
	Draining      State = "draining"      // up, but an operator wants no work on it
)

// Status is what is known of one shard: the value of its health key.
type Status struct {
	State State `json:"state"`
	// Since is when State was entered.
	Since time.Time `json:"since"`
	// CheckedAt is when the shard was last probed.
	CheckedAt time.Time `json:"checked_at"`
	// Reason says in words why the shard is in State; empty when it is up. It
	// never holds an account or a password.
	Reason string `json:"reason,omitempty"`
	// Alarm says in words what an operator has to look at although the shard may
	// serve, such as two nodes that take writes; usually empty.
	Alarm string `json:"alarm,omitempty"`
	// By names the instance that found out.
	By string `json:"by,omitempty"`
	// RTT is the duration of the last successful probe, in microseconds.
	RTT int64 `json:"rtt_us,omitempty"`
	// Falls counts how often the shard went out of service of late. The more
	// often it did, the longer it has to be well before it counts as up.
	Falls int `json:"falls,omitempty"`
	// Nodes lists the servers of the shard as the last probe found them.
	Nodes []Node `json:"nodes,omitempty"`
}

// Node is what is known of one server of a shard.
type Node struct {
	// Addr is the configured address, host:port.
	Addr  string `json:"addr"`
	State State  `json:"state"`
	// Role is "primary" for a node that takes writes, "standby" for one that
	// does not, and empty when unknown.
	Role string `json:"role,omitempty"`
	// Cluster names the synchronous cluster that the node is a member of:
	// nodes of equal and non-empty Cluster hold the same rows. Of a node that
	// gave no Role it is what it said when it last answered.
	Cluster string `json:"cluster,omitempty"`
	// Drained reports that an operator ordered the node to take no new work.
	Drained bool `json:"drained,omitempty"`
}

// View is one shard in a [Snapshot].
type View struct {
	Status
	// Drained reports that an operator ordered the shard to take no new work.
	Drained bool
	// DrainReason is the text of the order.
	DrainReason string
	// Contested reports that the shard is Down in this instance's eyes alone:
	// another instance reaches it, or has been asked and has not answered yet.
	// What is moved because of it should be a detour: serve elsewhere, store
	// nothing. It is false as soon as a witness agrees, when nobody can answer,
	// and whenever the fleet says down too.
	Contested bool
	// Hearsay reports that State is unfit (Down, ReadOnly or Misconfigured) by the
	// health key's word alone: no probe of this instance has borne it out since
	// the shard entered that state. Whoever would act for good on it should have
	// it looked at first; see [Cache.Look].
	Hearsay bool
}

// Snapshot is what this instance knows of every shard at one moment. It is
// immutable, and safe for use by several goroutines.
type Snapshot map[string]View

// Change tells that a shard went from one state to another. Where both are the
// same, a drain began or ended that the state does not show, since the shard is
// not up.
type Change struct {
	Shard      string
	Prev, Next Status
	// Own reports that this instance's own probe found it out; false means
	// that it was read from Redis.
	Own bool
}

// Result is the outcome of one probe.
type Result struct {
	// State is Up, Down, ReadOnly, Busy or Misconfigured.
	State State
	// Reason says why, when State is not Up. It must not hold a secret.
	Reason string
	// Alarm is the shard's; see [Status]. It must not hold a secret.
	Alarm string
	// Nodes lists the servers probed, where there are several.
	Nodes []Node
}

// String is the state as it stands in the health key; "unknown" for the zero
// value.
func (s State) String() string {
	if s == Unknown {
		return "unknown"
	}
	return string(s)
}
