package healthcache_test

import (
	"testing"
	"time"

	hc "github.com/shardhop/shardhop/healthcache"
)

func TestMerge(t *testing.T) {
	const life = 3 * time.Second
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	said := func(s hc.State, ago time.Duration) hc.Evidence {
		return hc.NewEvidence(hc.Status{State: s, Since: now.Add(-time.Hour)}, now.Add(-ago))
	}
	none := hc.Evidence{}
	tests := []struct {
		facts   hc.FactsOf
		want    hc.State
		drained bool
		src     hc.Source
		reason  string
	}{
		{hc.FactsOf{}, hc.Unknown, false, hc.FromNowhere, "nothing known means: try it"},
		{hc.FactsOf{Own: said(hc.Up, time.Second), Fleet: said(hc.Down, 0)}, hc.Up, false, hc.FromProbe, "own fresh evidence beats Redis"},
		{hc.FactsOf{Own: said(hc.Down, time.Second), Fleet: said(hc.Up, 0)}, hc.Down, false, hc.FromProbe, "in both directions"},
		{hc.FactsOf{Own: said(hc.Down, life), Fleet: said(hc.Up, 0)}, hc.Down, false, hc.FromProbe, "three intervals include their end"},
		{hc.FactsOf{Own: said(hc.Down, life+1), Fleet: said(hc.Up, 0)}, hc.Up, false, hc.FromFleet, "old own evidence yields"},
		{hc.FactsOf{Own: said(hc.Down, life+1), Pinned: true, Fleet: said(hc.Up, 0)}, hc.Down, false, hc.FromProbe, "unless the next probe is under way"},
		{hc.FactsOf{Own: said(hc.Down, life+1), Fleet: said(hc.Up, life+1)}, hc.Unknown, false, hc.FromNowhere, "a record read long ago says nothing"},
		{hc.FactsOf{Own: none, Fleet: said(hc.Draining, 0)}, hc.Up, false, hc.FromFleet, "the drain key says whether it is drained, not the record"},
		{hc.FactsOf{Own: said(hc.Up, 0), Suspicion: "broken pipe"}, hc.Suspect, false, hc.FromRequest, "a failed request shows at once"},
		{hc.FactsOf{Fleet: said(hc.Busy, 0), Suspicion: "broken pipe"}, hc.Suspect, false, hc.FromRequest, "busy was serving"},
		{hc.FactsOf{Suspicion: "broken pipe"}, hc.Suspect, false, hc.FromRequest, "unknown was being tried"},
		{hc.FactsOf{Fleet: said(hc.Down, 0), Suspicion: "refused"}, hc.Down, false, hc.FromFleet, "down stays down"},
		{hc.FactsOf{Fleet: said(hc.ReadOnly, 0), Suspicion: "refused"}, hc.ReadOnly, false, hc.FromFleet, "unfit stays unfit"},
		{hc.FactsOf{Own: said(hc.Up, 0), Drain: true}, hc.Draining, true, hc.FromProbe, "an order without a reason is an order"},
		{hc.FactsOf{Own: said(hc.Down, 0), Drain: true}, hc.Down, true, hc.FromProbe, "a drain does not hide a death"},
		{hc.FactsOf{Drain: true}, hc.Unknown, true, hc.FromNowhere, "a drain is no knowledge of health"},
		{hc.FactsOf{Own: said(hc.Up, 0), Drain: true, Suspicion: "eof"}, hc.Suspect, true, hc.FromRequest, "draining was serving"},
		{hc.FactsOf{Own: said(hc.Up, 0), Drain: true, DrainUntil: now}, hc.Up, false, hc.FromProbe, "the order's time is over"},
		{hc.FactsOf{Own: said(hc.Up, 0), Drain: true, DrainUntil: now.Add(1)}, hc.Draining, true, hc.FromProbe, "not yet over"},
	}
	for _, tt := range tests {
		v, src := hc.Merge(tt.facts.Facts(), now, life)
		if v.State != tt.want || v.Drained != tt.drained || src != tt.src {
			t.Errorf("%+v = %v, drained %v, from %v; want %v, %v, %v: %s", tt.facts, v.State, v.Drained, src, tt.want, tt.drained, tt.src, tt.reason)
		}
	}
}

func TestMergeKeepsTheDrainsOwnWords(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	up := hc.NewEvidence(hc.Status{State: hc.Up, Since: now.Add(-time.Hour)}, now)
	v, _ := hc.Merge(hc.FactsOf{Own: up, Drain: true, DrainReason: "new disks", DrainSince: now.Add(-time.Minute)}.Facts(), now, time.Second)
	if v.Reason != "new disks" || v.DrainReason != "new disks" || !v.Since.Equal(now.Add(-time.Minute)) {
		t.Errorf("view = %+v", v)
	}
}

func TestDutyFrom(t *testing.T) {
	const life, timeout = 3 * time.Second, time.Second
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	heard := began.Add(time.Minute)
	var never time.Time
	tests := []struct {
		s      hc.Standing
		want   time.Time
		reason string
	}{
		{hc.NewStanding(true, false, true, began, heard), never, "the lease is the duty"},
		{hc.NewStanding(true, true, true, began, heard), never, "also while Redis is away"},
		{hc.NewStanding(false, true, false, began, never), never, "no Redis: everybody for himself, at once"},
		{hc.NewStanding(false, true, true, began, heard), heard.Add(life), "Redis gone: the last record still lives"},
		{hc.NewStanding(false, false, false, began, never), began.Add(timeout), "first reading hangs: no longer than its time"},
		{hc.NewStanding(false, false, true, began, never), began.Add(life), "another has the lease and must have its chance"},
		{hc.NewStanding(false, false, true, began, heard), heard.Add(life), "put off as long as results come"},
		{hc.NewStanding(false, false, true, began, heard).ConfirmedAt(heard), heard.Add(life * 5 / 12), "results say nothing of who is the writer"},
		{hc.NewStanding(false, true, true, began, heard).ConfirmedAt(heard), heard.Add(life * 5 / 12), "Redis gone: the record lives shorter than the results"},
		{hc.NewStanding(true, false, true, began, heard).ConfirmedAt(heard), never, "the lease is the duty, whatever was confirmed"},
	}
	for _, tt := range tests {
		if got := hc.DutyFrom(tt.s, life, timeout); !got.Equal(tt.want) {
			t.Errorf("dutyFrom(%+v) = %v, want %v: %s", tt.s, got, tt.want, tt.reason)
		}
	}
}
