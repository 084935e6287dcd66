package shardrouter

// Reach says how far things went on a wire.
type Reach = reach

const (
	ReachNotSent  = reachNotSent
	ReachSent     = reachSent
	ReachAnswered = reachAnswered
)

// Progressed judges the error of a statement as a connection does.
func Progressed(query string, to Reach, inTx, multi bool, err error) (Progress, bool) {
	return progressOf(ranAs{query: query, reach: to, inTx: inTx, multi: multi}, err,
		classify(err, occasion{phase: phaseStatement}))
}

// HungUp looks at the socket of a lease that nobody uses.
func (l *Lease) HungUp() bool { return l.server.wire.hungUp() }

// LocalAddr is the address of the lease's connection on this side.
func (l *Lease) LocalAddr() string { return l.server.wire.LocalAddr().String() }
