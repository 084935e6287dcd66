package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

func iterateCases() []Case {
	return []Case{
		{"iterating shows every session once", iterateShowsAll},
		{"iterating over nothing", iterateOverNothing},
		{"iterating ends sessions and changes others", iterateChanges},
		{"iterating stops at the first error", iterateStops},
	}
}

// several is more than one page of any scan, and several keys per node of a
// cluster.
const several = 40

func storeSeveral(t testing.TB, m Subject) (tokens, players []string) {
	t.Helper()
	for i := range several {
		player := fmt.Sprintf("player %02d", i)
		tokens = append(tokens, stored(t, m, "player", player))
		players = append(players, player)
	}
	return tokens, players
}

// players lists who is logged in.
func players(t testing.TB, m Subject) []string {
	t.Helper()
	var found []string
	err := m.Iterate(t.Context(), func(ctx context.Context) error {
		found = append(found, m.GetString(ctx, "player"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

func iterateShowsAll(t testing.TB, open Harness) {
	m := open(t)
	_, want := storeSeveral(t, m)
	if got := players(t, m); !slices.Equal(got, want) {
		t.Errorf("saw %v", got)
	}
}

func iterateOverNothing(t testing.TB, open Harness) {
	if got := players(t, open(t)); len(got) != 0 {
		t.Errorf("saw %q", got)
	}
}

func iterateChanges(t testing.TB, open Harness) {
	m := open(t)
	tokens, want := storeSeveral(t, m)
	err := m.Iterate(t.Context(), func(ctx context.Context) error {
		if m.GetString(ctx, "player") == want[0] {
			return m.Destroy(ctx)
		}
		m.Put(ctx, "seen", true)
		_, _, err := m.Commit(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := players(t, m); !slices.Equal(got, want[1:]) {
		t.Errorf("left are %v", got)
	}
	if keys := m.Keys(load(t, m, tokens[0])); len(keys) != 0 {
		t.Errorf("destroyed, and its token gives %v", keys)
	}
	if !m.GetBool(load(t, m, tokens[1]), "seen") {
		t.Error("a change was not saved")
	}
}

func iterateStops(t testing.TB, open Harness) {
	m := open(t)
	storeSeveral(t, m)
	stop := errors.New("stop")
	calls := 0
	err := m.Iterate(t.Context(), func(context.Context) error { calls++; return stop })
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
