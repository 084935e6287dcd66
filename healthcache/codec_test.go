package healthcache_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	hc "github.com/shardhop/shardhop/healthcache"
)

var redisNow = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)

func record(edit func(m map[string]any)) string {
	m := map[string]any{
		"state": "down", "since": "2026-05-06T07:00:00.000Z", "checked_at": "2026-05-06T07:08:08.500Z",
		"reason": "connection refused", "by": "web-1:17:ABCDEF", "rtt_us": 812,
		"nodes": []any{map[string]any{"addr": "10.0.0.1:3306", "state": "down", "role": "primary"}},
	}
	edit(m)
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func set(key string, value any) func(map[string]any) {
	return func(m map[string]any) { m[key] = value }
}

func nodes(n int, node map[string]any) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = node
	}
	return all
}

func TestDecodeStatus(t *testing.T) {
	long := strings.Repeat("x", 600)
	tests := []struct {
		value  string
		ok     bool
		reason string
	}{
		{record(func(map[string]any) {}), true, "what the library writes"},
		{record(set("by", nil)), true, "not needed"},
		{record(set("future", map[string]any{"a": 1})), true, "a newer version may say more"},
		{"", false, "empty"},
		{"down", false, "no JSON"},
		{"null", false, "JSON, but nothing"},
		{"[]", false, "another type"},
		{`"down"`, false, "another type"},
		{`{"state":"down"`, false, "cut off"},
		{record(func(map[string]any) {}) + "x", false, "something behind it"},
		{record(set("state", "")), false, "no state"},
		{record(set("state", "UP")), false, "no state of ours"},
		{record(set("state", "dead")), false, "unknown state"},
		{record(set("state", 1)), false, "wrong type"},
		{record(set("since", nil)), false, "no date"},
		{record(set("since", "yesterday")), false, "no date"},
		{record(set("since", 1778051289)), false, "wrong type"},
		{record(set("since", "2026-05-06T07:08:09Z")), false, "entered after it was checked"},
		{record(set("since", "1970-01-01T00:00:00Z")), false, "before there was anything to check"},
		{record(set("checked_at", "2026-05-06T07:06:00Z")), false, "minutes old, whatever its TTL says"},
		{record(set("checked_at", "2099-01-01T00:00:00Z")), false, "from the future"},
		{record(set("checked_at", "2026-05-06T09:08:08+02:00")), true, "another zone, the same moment"},
		{record(set("reason", long)), false, "absurd size"},
		{record(set("by", long)), false, "absurd size"},
		{record(set("rtt_us", -1)), false, "nothing answers before it is asked"},
		{record(set("rtt_us", 1e18)), false, "absurd size"},
		{record(set("rtt_us", "fast")), false, "wrong type"},
		{record(set("nodes", "n")), false, "wrong type"},
		{record(set("nodes", nodes(65, map[string]any{"addr": "a:1", "state": "up"}))), false, "absurd size"},
		{record(set("nodes", nodes(64, map[string]any{"addr": "a:1", "state": "up"}))), true, "many, but possible"},
		{record(set("nodes", nodes(1, map[string]any{"addr": "", "state": "up"}))), false, "a node without address"},
		{record(set("nodes", nodes(1, map[string]any{"addr": long, "state": "up"}))), false, "absurd size"},
		{record(set("nodes", nodes(1, map[string]any{"addr": "a:1", "state": "odd"}))), false, "unknown state"},
		{record(set("nodes", nodes(1, map[string]any{"addr": "a:1", "role": "king"}))), false, "unknown role"},
		{record(set("nodes", nodes(1, map[string]any{"addr": "a:1", "cluster": "1c9057b7 east"}))), true, "a member of a cluster"},
		{record(set("nodes", nodes(1, map[string]any{"addr": "a:1", "cluster": long}))), false, "absurd size"},
		{record(set("pad", strings.Repeat("x", 17<<10))), false, "absurd size"},
	}
	for _, tt := range tests {
		s, err := hc.DecodeStatus(tt.value, redisNow)
		if (err == nil) != tt.ok {
			t.Errorf("%.200s: %v, want ok %v: %s", tt.value, err, tt.ok, tt.reason)
		}
		if err != nil && s.State != hc.Unknown {
			t.Errorf("%.200s: state %v beside an error", tt.value, s.State)
		}
	}
	if _, err := hc.DecodeStatus(record(set("checked_at", "2026-05-06T07:06:00Z")), time.Time{}); err != nil {
		t.Errorf("without Redis's clock: %v", err)
	}
}

// FuzzDecodeStatus holds that nothing in a health key harms, and that what is
// accepted is a record that could be written again.
func FuzzDecodeStatus(f *testing.F) {
	f.Add(record(func(map[string]any) {}))
	f.Add(`{"state":"up","since":"2026-05-06T07:00:00.000Z","checked_at":"2026-05-06T07:08:09.000Z","by":"x"}`)
	f.Add(`{"state":"up","nodes":[{}],"since":0}`)
	f.Add(`[[[[`)
	f.Fuzz(func(t *testing.T, value string) {
		s, err := hc.DecodeStatus(value, redisNow)
		if err != nil {
			return
		}
		if s.State == hc.Unknown || s.Since.After(s.CheckedAt) || redisNow.Sub(s.CheckedAt).Abs() > time.Minute {
			t.Fatalf("accepted %+v", s)
		}
		const layout = "2006-01-02T15:04:05.000Z"
		again := fmt.Sprintf(`{"state":%q,"since":%q,"checked_at":%q%s`, string(s.State),
			s.Since.UTC().Format(layout), s.CheckedAt.UTC().Format(layout), hc.EncodeTail(s))
		if _, err := hc.DecodeStatus(again, time.Time{}); err != nil && !strings.Contains(again, `\ufffd`) {
			t.Fatalf("%s, written again as %s: %v", value, again, err)
		}
	})
}
