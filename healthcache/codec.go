package healthcache

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// What a health key and a drain key may hold. Longer values were written by
// somebody else.
const (
	maxRecordBytes = 16 << 10
	maxTextBytes   = 512
	maxNodes       = 64
	maxFalls       = 1 << 20
	maxRTT         = int64(time.Hour / time.Microsecond)
)

// minSlack is the least distance from Redis's clock at which a record's date
// counts as foreign.
const minSlack = time.Minute

// clock is Redis's clock as it was read, and how far a record's date may be
// from it. Freshness is the TTL's business; this only sorts out dates that
// come from elsewhere. The zero clock sorts out none.
type clock struct {
	now   time.Time
	slack time.Duration
}

func newClock(now time.Time, life time.Duration) clock {
	return clock{now: now, slack: max(minSlack, 2*life)}
}

func (c clock) foreign(date time.Time) bool {
	return !c.now.IsZero() && c.now.Sub(date).Abs() > c.slack
}

// timeLayout is RFC 3339 in UTC with milliseconds, as the script writes it.
const timeLayout = "2006-01-02T15:04:05.000Z"

// decodeStatus reads the value of a health key. Anything that this library
// would not have written, or not lately, is an error.
func decodeStatus(value string, c clock) (Status, error) {
	if len(value) > maxRecordBytes {
		return Status{}, fmt.Errorf("%w: %d bytes", errForeign, len(value))
	}
	var s Status
	if err := json.Unmarshal([]byte(value), &s); err != nil {
		return Status{}, fmt.Errorf("%w: %w", errForeign, err)
	}
	if s.State == Unknown || !knownState(s.State) {
		return Status{}, fmt.Errorf("%w: state %.32q", errForeign, s.State)
	}
	if !plausibleDates(s) || c.foreign(s.CheckedAt) {
		return Status{}, fmt.Errorf("%w: dates since %v, checked_at %v", errForeign, s.Since, s.CheckedAt)
	}
	if !plausibleDetails(s) {
		return Status{}, fmt.Errorf("%w: absurd details", errForeign)
	}
	return s, nil
}

func knownState(s State) bool {
	switch s {
	case Unknown, Up, Suspect, Down, ReadOnly, Busy, Misconfigured, Draining:
		return true
	}
	return false
}

func plausibleDates(s Status) bool {
	return s.Since.Year() >= 2000 && s.CheckedAt.Year() <= 9000 && !s.Since.After(s.CheckedAt)
}

func plausibleDetails(s Status) bool {
	if len(s.Reason) > maxTextBytes || len(s.Alarm) > maxTextBytes || len(s.By) > maxTextBytes || s.RTT < 0 || s.RTT > maxRTT || len(s.Nodes) > maxNodes {
		return false
	}
	if s.Falls < 0 || s.Falls > maxFalls {
		return false
	}
	return !slices.ContainsFunc(s.Nodes, func(n Node) bool { return !plausibleNode(n) })
}

func plausibleNode(n Node) bool {
	role := n.Role == "" || n.Role == "primary" || n.Role == "standby"
	return role && knownState(n.State) && n.Addr != "" && len(n.Addr) <= maxTextBytes && len(n.Cluster) <= maxTextBytes
}

// encodeTail is a record without its state and dates, which the script puts in
// front of it: what follows the last date, to the closing brace.
func encodeTail(s Status) string {
	tail := struct {
		Reason string `json:"reason,omitempty"`
		Alarm  string `json:"alarm,omitempty"`
		By     string `json:"by"`
		RTT    int64  `json:"rtt_us,omitempty"`
		Falls  int    `json:"falls,omitempty"`
		Nodes  []Node `json:"nodes,omitempty"`
	}{s.Reason, s.Alarm, s.By, s.RTT, s.Falls, s.Nodes}
	// Strings and integers always encode.
	text, _ := json.Marshal(tail)
	return "," + string(text[1:])
}

// clip makes text from outside fit for a key, a log line and a page.
func clip(text string) string {
	if len(text) > maxTextBytes {
		text = text[:maxTextBytes]
	}
	return strings.ToValidUTF8(text, "")
}
