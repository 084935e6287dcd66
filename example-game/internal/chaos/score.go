package chaos

import (
	"fmt"
	"slices"
	"time"
)

// Score counts what players met. The zero value is empty. It is for one
// goroutine at a time.
type Score struct {
	Requests  int
	Failed    int
	LoggedOut int // of the failed: turned away as nobody
	Stale     int // reads that missed what their player had been told before
	Repeats   int // requests sent again with their key, which are no requests of their own
	// Kinds counts the failures by what they looked like.
	Kinds map[string]int

	waits []time.Duration // of every request
}

// request counts a request and how it failed; "" when it did not.
func (s *Score) request(took time.Duration, failure string) {
	s.Requests++
	s.waits = append(s.waits, took)
	if failure != "" {
		s.fail(failure)
	}
}

func (s *Score) fail(failure string) {
	s.Failed++
	if s.Kinds == nil {
		s.Kinds = map[string]int{}
	}
	s.Kinds[failure]++
}

// Add adds what other has counted.
func (s *Score) Add(other Score) {
	s.Requests += other.Requests
	s.Failed += other.Failed
	s.LoggedOut += other.LoggedOut
	s.Stale += other.Stale
	s.Repeats += other.Repeats
	for kind, n := range other.Kinds {
		if s.Kinds == nil {
			s.Kinds = map[string]int{}
		}
		s.Kinds[kind] += n
	}
	s.waits = append(s.waits, other.waits...)
}

// Longest is the longest wait for an answer.
func (s *Score) Longest() time.Duration {
	if len(s.waits) == 0 {
		return 0
	}
	return slices.Max(s.waits)
}

// Quantile is the wait that a share q of all requests, between 0 and 1, did not
// exceed.
func (s *Score) Quantile(q float64) time.Duration {
	if len(s.waits) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.waits))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// Header is the head of a table whose lines are those of Line.
const Header = `| fault | rounds | requests | failed | lost | doubled | logged out | stale reads | p99 | longest wait |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|`

// Line is what the rounds of one fault came to, as a line of a table.
func Line(fault string, rounds int, s *Score, a Audit) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d | %d | %v | %v |", fault, rounds, s.Requests, s.Failed,
		a.Lost, a.Doubled, s.LoggedOut, s.Stale, short(s.Quantile(0.99)), short(s.Longest()))
}

func short(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
