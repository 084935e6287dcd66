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
	Verdict  = verdict
)

const (
	Scheduled = scheduled
	Suspected = suspected
	Checked   = checked

	Unjudged     = unjudged
	Agreed       = agreed
	Contradicted = contradicted
	MaxWitnesses = maxWitnesses

	FromNowhere = fromNowhere
	FromProbe   = fromProbe
	FromRequest = fromRequest
	FromFleet   = fromFleet
	FromUse     = fromUse
)

var (
	Transition = transition
	Merge      = merge
	DutyFrom   = dutyFrom
	EncodeTail = encodeTail
	LeaseKey   = leaseKey
	Witnesses  = witnesses
)

func SeedHistory(s Status) History { return seed(s, s.Since, damping{}) }

// DecodeStatus reads a record by Redis's clock, with the slack of short intervals.
func DecodeStatus(value string, redisNow time.Time) (Status, error) {
	return decodeStatus(value, newClock(redisNow, time.Second))
}

func NewHistory(state State, since time.Time, owed int) History {
	return history{state: state, since: since, owed: owed}
}

// Damped is h with falls held against it.
func Damped(h History, interval time.Duration) History {
	h.damping = damping{unit: interval, jitter: 0.5}
	return h
}

func (h history) State() State     { return h.state }
func (h history) Owed() int        { return h.owed }
func (h history) Since() time.Time { return h.since }

func NewEvidence(s Status, at time.Time) Evidence { return evidence{status: s, at: at} }

// Penalty is how long a shard stays down at least.
func Penalty(interval time.Duration, jitter float64, falls int) time.Duration {
	return damping{unit: interval, jitter: jitter}.penalty(falls)
}

// Judge is the verdict on words as they stand in Redis.
func Judge(asked []string, said map[string]string, since time.Time) Verdict {
	words := map[string]testimony{}
	for witness, text := range said {
		if t, ok := decodeTestimony(text); ok {
			words[witness] = t
		}
	}
	return judge(asked, words, since)
}

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
	Used        time.Time
	Verdict     Verdict
}

func (f FactsOf) Facts() Facts {
	out := facts{own: f.Own, fleet: f.Fleet, pinned: f.Pinned, used: f.Used, verdict: f.Verdict}
	if f.Suspicion != "" {
		out.suspect = &suspicion{reason: f.Suspicion, since: f.SuspectedAt}
	}
	out.drain = drainOrder{set: f.Drain, reason: f.DrainReason, since: f.DrainSince, until: f.DrainUntil}
	return out
}

func NewStanding(lease, alone, read bool, began, heard time.Time) Standing {
	return standing{lease: lease, alone: alone, read: read, began: began, heard: heard}
}

// ConfirmedAt is s of a shard whose writer's record was confirmed at that time.
func (s standing) ConfirmedAt(at time.Time) Standing {
	s.confirmed = at
	return s
}

// HoldNotices keeps every notice from being queued until release is called.
func HoldNotices(c *Cache) (release func()) {
	c.board.notices.mu.Lock()
	return c.board.notices.mu.Unlock
}

// Handovers lists what is offered, as shard→instance.
func Handovers(self string, holders map[string]string, members []string) (offers []string) {
	for _, o := range handovers(self, holders, members) {
		offers = append(offers, o.shard+"→"+o.peer)
	}
	return offers
}
