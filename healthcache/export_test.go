package healthcache

import "time"

// What the black-box tests need of the inside: the pure decisions.

type (
	History  = history
	Occasion = occasion
	Facts    = facts
	Evidence = evidence
	Source   = source
	Standing = standing
)

const (
	Scheduled = scheduled
	Suspected = suspected
	Checked   = checked

	FromNowhere = fromNowhere
	FromProbe   = fromProbe
	FromRequest = fromRequest
	FromFleet   = fromFleet
)

var (
	Transition  = transition
	Merge       = merge
	DutyFrom    = dutyFrom
	EncodeTail  = encodeTail
	LeaseKey    = leaseKey
	SeedHistory = seed
)

// DecodeStatus reads a record by Redis's clock, with the slack of short intervals.
func DecodeStatus(value string, redisNow time.Time) (Status, error) {
	return decodeStatus(value, newClock(redisNow, time.Second))
}

func NewHistory(state State, since time.Time, owed int) History {
	return history{state: state, since: since, owed: owed}
}

func (h history) State() State     { return h.state }
func (h history) Owed() int        { return h.owed }
func (h history) Since() time.Time { return h.since }

func NewEvidence(s Status, at time.Time) Evidence { return evidence{status: s, at: at} }

// FactsOf is the pieces of a view, in the words of a test.
type FactsOf struct {
	Own, Fleet  Evidence
	Pinned      bool
	Suspicion   string
	SuspectedAt time.Time
	Drain       bool
	DrainReason string
	DrainSince  time.Time
	DrainUntil  time.Time
}

func (f FactsOf) Facts() Facts {
	out := facts{own: f.Own, fleet: f.Fleet, pinned: f.Pinned}
	if f.Suspicion != "" {
		out.suspect = &suspicion{reason: f.Suspicion, since: f.SuspectedAt}
	}
	out.drain = drainOrder{set: f.Drain, reason: f.DrainReason, since: f.DrainSince, until: f.DrainUntil}
	return out
}

func NewStanding(lease, alone, read bool, began, heard time.Time) Standing {
	return standing{lease: lease, alone: alone, read: read, began: began, heard: heard}
}
