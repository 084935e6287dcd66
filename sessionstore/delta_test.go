package sessionstore_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shardhop/shardhop/sessionstore"
)

func TestDiff(t *testing.T) {
	type values = map[string]string
	tests := []struct {
		reason     string
		base, mine values
		set, del   []string
	}{
		{"nothing at all", nil, nil, nil, nil},
		{"unchanged", values{"a": "1"}, values{"a": "1"}, nil, nil},
		{"new", nil, values{"a": "1"}, []string{"a"}, nil},
		{"changed", values{"a": "1"}, values{"a": "2"}, []string{"a"}, nil},
		{"removed", values{"a": "1"}, nil, nil, []string{"a"}},
		{"as many as before, but others", values{"a": "1"}, values{"b": "1"}, []string{"b"}, []string{"a"}},
		{"one more and one less", values{"a": "1", "b": "1"}, values{"b": "1", "c": "1"}, []string{"c"}, []string{"a"}},
	}
	for _, test := range tests {
		set, del := sessionstore.Diff(test.base, test.mine)
		if !slices.Equal(set, test.set) || !slices.Equal(del, test.del) {
			t.Errorf("%s: set %v, del %v", test.reason, set, del)
		}
	}
}

// TestMergeLosesNothing draws two requests that start from one session: what
// only one of them changed ends as that one wanted it.
func TestMergeLosesNothing(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	values := rapid.MapOf(rapid.SampledFrom(names), rapid.SampledFrom([]string{"1", "2"}))
	rapid.Check(t, func(t *rapid.T) {
		base, mine, theirs := values.Draw(t, "base"), values.Draw(t, "mine"), values.Draw(t, "theirs")
		merged := sessionstore.Merge(base, mine, theirs)
		for _, name := range names {
			want, present := theirs[name]
			if own, ok := mine[name]; own != base[name] {
				want, present = own, ok
			}
			if got, ok := merged[name]; got != want || ok != present {
				t.Fatalf("%s: %q %v, want %q %v", name, got, ok, want, present)
			}
		}
	})
}
