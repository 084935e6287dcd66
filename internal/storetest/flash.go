package storetest

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/alexedwards/scs/v2"
)

func flashCases() []Case {
	return []Case{
		{"a flash value is seen by one page", flashOverHTTP},
		{"pop gives every type once", popGivesOnce},
		{"pop of what is absent changes nothing", popOfNothing},
	}
}

func flashOverHTTP(t testing.TB, open Harness) {
	s := newSite(t, open)
	s.mux.HandleFunc("/flash", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, s.PopString(r.Context(), "flash"))
	})
	b := s.browser()
	b.visit("/put?flash=saved&uid=7")
	if got := b.visit("/flash").body; got != "saved" {
		t.Errorf("the next page shows %q", got)
	}
	if got := b.visit("/flash").body; got != "" {
		t.Errorf("the page after it shows %q", got)
	}
	s.want(b, "uid", "7")
}

func popGivesOnce(t testing.TB, open Harness) {
	m := open(t)
	moment := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	ctx := load(t, m, "")
	for key, value := range map[string]any{
		"any": int32(1), "string": "Ada", "bool": true, "int": 7, "float": 1.5, "bytes": []byte("gold"), "time": moment,
	} {
		m.Put(ctx, key, value)
	}
	token := commit(ctx, t, m)
	ctx = load(t, m, token)
	if m.Pop(ctx, "any") != int32(1) || m.PopString(ctx, "string") != "Ada" || !m.PopBool(ctx, "bool") ||
		m.PopInt(ctx, "int") != 7 || m.PopFloat(ctx, "float") != 1.5 ||
		string(m.PopBytes(ctx, "bytes")) != "gold" || !m.PopTime(ctx, "time").Equal(moment) {
		t.Error("popped other values than were put")
	}
	if m.Status(ctx) != scs.Modified {
		t.Errorf("status after pop: %v", m.Status(ctx))
	}
	commit(ctx, t, m)
	if keys := m.Keys(load(t, m, token)); len(keys) != 0 {
		t.Errorf("popped and still there: %v", keys)
	}
}

func popOfNothing(t testing.TB, open Harness) {
	m := open(t)
	ctx := load(t, m, stored(t, m, "a", "1"))
	if m.Pop(ctx, "absent") != nil || m.PopString(ctx, "absent") != "" || m.PopInt(ctx, "absent") != 0 {
		t.Error("popped something")
	}
	if m.Status(ctx) != scs.Unmodified {
		t.Errorf("status: %v", m.Status(ctx))
	}
}
