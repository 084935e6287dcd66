package healthcache_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	hc "github.com/shardhop/shardhop/healthcache"
)

func TestTransition(t *testing.T) {
	before := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now := before.Add(time.Minute)
	tests := []struct {
		was     hc.State
		owed    int
		why     hc.Occasion
		found   hc.State
		want    hc.State
		wantOwe int
		reason  string
	}{
		{hc.Unknown, 0, hc.Scheduled, hc.Up, hc.Up, 0, "first boot: one good probe is enough"},
		{hc.Unknown, 0, hc.Scheduled, hc.Down, hc.Down, 2, "first boot: nobody is served yet, nothing to confirm"},
		{hc.Up, 0, hc.Scheduled, hc.Up, hc.Up, 0, "nothing new"},
		{hc.Up, 0, hc.Scheduled, hc.Down, hc.Suspect, 0, "one lost probe is no sentence"},
		{hc.Up, 0, hc.Checked, hc.Down, hc.Suspect, 0, "no request failed here, so one probe is one piece of evidence"},
		{hc.Up, 0, hc.Suspected, hc.Down, hc.Down, 2, "failed request and failed probe are two pieces"},
		{hc.Suspect, 0, hc.Scheduled, hc.Down, hc.Down, 2, "confirmed"},
		{hc.Suspect, 0, hc.Scheduled, hc.Up, hc.Up, 0, "a blip"},
		{hc.Down, 2, hc.Scheduled, hc.Up, hc.Down, 1, "one good probe is not yet a recovery"},
		{hc.Down, 1, hc.Scheduled, hc.Up, hc.Up, 0, "the second in a row is"},
		{hc.Down, 1, hc.Scheduled, hc.Down, hc.Down, 2, "the row is broken"},
		{hc.Down, 2, hc.Suspected, hc.Up, hc.Down, 1, "a request that failed earns no short cut"},
		{hc.Down, 2, hc.Checked, hc.Up, hc.Up, 0, "the last one standing needs one success"},
		{hc.Down, 1, hc.Scheduled, hc.Busy, hc.Busy, 2, "alive but full; the recovery starts again"},
		{hc.Up, 0, hc.Scheduled, hc.ReadOnly, hc.ReadOnly, 2, "the server itself says so: one result is proof"},
		{hc.ReadOnly, 2, hc.Scheduled, hc.Up, hc.ReadOnly, 1, "unfit states are left like down"},
		{hc.ReadOnly, 1, hc.Scheduled, hc.Up, hc.Up, 0, "unfit states are left like down"},
		{hc.ReadOnly, 2, hc.Scheduled, hc.Down, hc.Down, 2, "it was out of use already"},
		{hc.Up, 0, hc.Scheduled, hc.Misconfigured, hc.Misconfigured, 2, "the server itself says so"},
		{hc.Misconfigured, 1, hc.Scheduled, hc.Misconfigured, hc.Misconfigured, 2, "the row is broken"},
		{hc.Up, 0, hc.Suspected, hc.Busy, hc.Busy, 0, "load is not death"},
		{hc.Busy, 0, hc.Scheduled, hc.Up, hc.Up, 0, "load leaves no debt"},
		{hc.Busy, 2, hc.Scheduled, hc.Up, hc.Busy, 1, "but the debt of an earlier death stays"},
		{hc.Busy, 0, hc.Scheduled, hc.Down, hc.Suspect, 0, "it served until now"},
		{hc.Busy, 1, hc.Scheduled, hc.Down, hc.Down, 2, "it was still recovering"},
	}
	for _, tt := range tests {
		got := hc.Transition(hc.NewHistory(tt.was, before, tt.owed), tt.why, tt.found, now)
		if got.State() != tt.want || got.Owed() != tt.wantOwe {
			t.Errorf("%v (owed %d) + %v on occasion %d = %v (owed %d), want %v (owed %d): %s",
				tt.was, tt.owed, tt.found, tt.why, got.State(), got.Owed(), tt.want, tt.wantOwe, tt.reason)
		}
		wantSince := before
		if tt.was != tt.want {
			wantSince = now
		}
		if !got.Since().Equal(wantSince) {
			t.Errorf("%v + %v: since %v, want %v", tt.was, tt.found, got.Since(), wantSince)
		}
	}
}

func TestSeed(t *testing.T) {
	tests := []struct {
		shared, want hc.State
		owed         int
		reason       string
	}{
		{hc.Unknown, hc.Unknown, 0, "nothing to continue"},
		{hc.Up, hc.Up, 0, "continues"},
		{hc.Draining, hc.Up, 0, "a drain is an order, not health"},
		{hc.Suspect, hc.Suspect, 0, "the next probe decides"},
		{hc.Down, hc.Down, 2, "another prober's death sentence needs two good probes too"},
		{hc.ReadOnly, hc.ReadOnly, 2, "like down"},
		{hc.Busy, hc.Busy, 0, "load leaves no debt"},
	}
	for _, tt := range tests {
		if h := hc.SeedHistory(hc.Status{State: tt.shared}); h.State() != tt.want || h.Owed() != tt.owed {
			t.Errorf("seed(%v) = %v, owed %d; want %v, owed %d: %s", tt.shared, h.State(), h.Owed(), tt.want, tt.owed, tt.reason)
		}
	}
}

// TestTransitionHolds checks what must hold after every sequence of probes.
func TestTransitionHolds(t *testing.T) {
	found := rapid.SampledFrom([]hc.State{hc.Up, hc.Up, hc.Down, hc.ReadOnly, hc.Busy, hc.Misconfigured})
	why := rapid.SampledFrom([]hc.Occasion{hc.Scheduled, hc.Scheduled, hc.Suspected})
	rapid.Check(t, func(t *rapid.T) {
		var h hc.History
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		good, bad, unfit := 0, 0, false // unfit: out of use since it was last up
		for i := range rapid.IntRange(1, 60).Draw(t, "probes") {
			result := found.Draw(t, "result")
			was := h.State()
			now = now.Add(time.Second)
			h = hc.Transition(h, why.Draw(t, "why"), result, now)
			if result == hc.Up {
				good, bad = good+1, 0
			} else {
				good, bad = 0, bad+1
			}
			switch h.State() {
			case hc.Down, hc.ReadOnly, hc.Misconfigured:
				unfit = true
			case hc.Up:
				if unfit && good < 2 {
					t.Fatalf("probe %d: up after %d good probes", i, good)
				}
				if result != hc.Up {
					t.Fatalf("probe %d: up by a result of %v", i, result)
				}
				unfit = false
			case hc.Unknown, hc.Draining:
				t.Fatalf("probe %d: a probe led to %v", i, h.State())
			}
			if h.State() == hc.Down && result == hc.Down && was == hc.Suspect && bad < 2 {
				t.Fatalf("probe %d: confirmed by %d failures", i, bad)
			}
			if good >= 2 && h.State() != hc.Up {
				t.Fatalf("probe %d: %d good probes in a row, and %v", i, good, h.State())
			}
			if h.State() != was && !h.Since().Equal(now) {
				t.Fatalf("probe %d: since %v of a state entered at %v", i, h.Since(), now)
			}
		}
	})
}
