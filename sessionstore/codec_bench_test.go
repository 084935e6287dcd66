package sessionstore_test

import (
	"encoding/gob"
	"fmt"
	"testing"
	"time"

	"github.com/alexedwards/scs/v2"

	"github.com/shardhop/shardhop/sessionstore"
)

func init() {
	gob.Register([]string{})
	gob.Register(map[string]any{})
}

// sessionOf returns a session of n values as applications have them.
func sessionOf(n int) map[string]any {
	all := []struct {
		key   string
		value any
	}{
		{"uid", int64(1_204_533)},
		{"name", "Ada Lovelace"},
		{"admin", false},
		{"since", time.Date(2026, 3, 14, 15, 9, 26, 535_897_932, time.UTC)},
		{"csrf", "Zm9ydHktdHdvIGJ5dGVzIG9mIHRoZSBiZXN0IHJhbmRvbQ"},
		{"roles", []string{"player", "moderator"}},
		{"locale", "en-GB"}, {"theme", "dark"}, {"level", 17}, {"gold", int64(90_210)},
		{"ratio", 0.75}, {"tutorial", true}, {"guild", "Analytical Engines"}, {"last_seen", time.Date(2026, 3, 14, 16, 0, 0, 0, time.UTC)},
		{"flash", "Welcome back!"}, {"cart", map[string]int{"sword": 1, "potion": 3}}, {"tz", "Europe/London"}, {"volume", 0.5},
		{"clicks", 1024}, {"newsletter", true}, {"return_to", "/market?page=2"},
	}
	values := make(map[string]any, n)
	for _, v := range all[:n] {
		values[v.key] = v.value
	}
	return values
}

var sessionSizes = []int{2, 4, 6, 21}

// BenchmarkCodec measures the packed form of whole sessions, beside gob as scs
// uses it. Decoding begins with what the store makes of a hash.
func BenchmarkCodec(b *testing.B) {
	for _, n := range sessionSizes {
		for name, c := range map[string]scs.Codec{"sessionstore": sessionstore.Codec, "gob": scs.GobCodec{}} {
			b.Run(fmt.Sprintf("%d values/%s", n, name), func(b *testing.B) { benchCodec(b, c, sessionOf(n)) })
		}
	}
}

func benchCodec(b *testing.B, c scs.Codec, values map[string]any) {
	deadline := time.Date(2026, 3, 15, 0, 0, 0, 0, time.UTC)
	packed, err := c.Encode(deadline, values)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Encode(deadline, values); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(packed)), "bytes")
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := c.Decode(packed); err != nil {
				b.Fatal(err)
			}
		}
	})
}
