package sessionstore

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// These are pure functions without a door to the outside, so their test is
// inside.

func TestDiff(t *testing.T) {
	tests := []struct {
		reason string
		base   map[string]string
		mine   []field
		set    []string
		del    []string
	}{
		{"nothing at all", nil, nil, nil, nil},
		{"unchanged", map[string]string{"a": "1"}, []field{{"a", "1"}}, nil, nil},
		{"new", nil, []field{{"a", "1"}}, []string{"a"}, nil},
		{"changed", map[string]string{"a": "1"}, []field{{"a", "2"}}, []string{"a"}, nil},
		{"removed", map[string]string{"a": "1"}, nil, nil, []string{"a"}},
		{"as many as before, but others", map[string]string{"a": "1"}, []field{{"b", "1"}}, []string{"b"}, []string{"a"}},
	}
	for _, test := range tests {
		d := diff(test.base, test.mine)
		var set []string
		for _, f := range d.set {
			set = append(set, f.name)
		}
		if !slices.Equal(set, test.set) || !slices.Equal(d.del, test.del) {
			t.Errorf("%s: set %v, del %v", test.reason, set, d.del)
		}
	}
}

// TestMergeLosesNothing draws two requests that start from one session: what
// only one of them changed ends as that one wanted it.
func TestMergeLosesNothing(t *testing.T) {
	values := rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.SampledFrom([]string{"1", "2"}))
	rapid.Check(t, func(t *rapid.T) {
		base, mine, theirs := values.Draw(t, "base"), values.Draw(t, "mine"), values.Draw(t, "theirs")
		var fields []field
		for _, name := range slices.Sorted(maps.Keys(mine)) {
			fields = append(fields, field{name, mine[name]})
		}
		merged := merge(theirs, diff(base, fields))
		for _, name := range []string{"a", "b", "c", "d"} {
			want, ok := theirs[name]
			if m, in := mine[name]; m != base[name] {
				want, ok = m, in
			}
			if got, in := merged[name]; got != want || in != ok {
				t.Fatalf("%s: %q %v, want %q %v", name, got, in, want, ok)
			}
		}
	})
}
