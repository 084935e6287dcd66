package storetest

import (
	"context"
	"net/http"
	"testing"
)

func renewalCases() []Case {
	return []Case{
		{"a token renewed during a slow request stays dead", renewedDuringASlowRequest},
		{"a slow renewal takes along what others stored meanwhile", slowRenewalTakesAlong},
		{"a slow renewal takes nothing from a session logged out meanwhile", slowRenewalAfterLogout},
		{"of two renewals at once one token lives", twoRenewals},
		{"a renewal that cannot be saved keeps the player logged in", renewalThatFails},
	}
}

func renewedDuringASlowRequest(t testing.TB, open Harness) {
	s := newSite(t, open)
	slow := s.gated("/slow", s.put)
	b := s.browser()
	b.visit("/put?uid=7")
	old := b.token()
	answer := slow.during(b, "/slow?late=1", func() { b.visit("/renew") })
	if answer.setsCookie() {
		t.Errorf("the slow answer sets %q", answer.header["Set-Cookie"])
	}
	s.want(b, "uid", "7")
	if keys := s.Keys(s.load(old)); len(keys) != 0 {
		t.Errorf("the old token gives %v", keys)
	}
	s.wantStored(1)
}

// gatedRenewal renews behind a gate and stores the parameters.
func gatedRenewal(s *site) *gate {
	return s.gated("/slow", func(w http.ResponseWriter, r *http.Request) {
		s.call(s.RenewToken)(w, r)
		s.put(w, r)
	})
}

func slowRenewalTakesAlong(t testing.TB, open Harness) {
	s := newSite(t, open)
	slow := gatedRenewal(s)
	b := s.browser()
	b.visit("/put?uid=7&theme=dark")
	old := b.token()
	slow.during(b, "/slow?mine=1", func() { b.visit("/put?theme=light&theirs=1") })
	s.want(b, "uid", "7", "theme", "light", "theirs", "1", "mine", "1")
	if keys := s.Keys(s.load(old)); len(keys) != 0 {
		t.Errorf("the old token gives %v", keys)
	}
	s.wantStored(1)
}

func slowRenewalAfterLogout(t testing.TB, open Harness) {
	s := newSite(t, open)
	slow := gatedRenewal(s)
	b := s.browser()
	b.visit("/put?uid=7&role=admin")
	old := b.token()
	slow.during(b, "/slow?mine=1", func() { b.visit("/logout") })
	s.want(b, "uid", "", "role", "", "mine", "1")
	if keys := s.Keys(s.load(old)); len(keys) != 0 {
		t.Errorf("the old token gives %v", keys)
	}
	s.wantStored(1)
}

func twoRenewals(t testing.TB, open Harness) {
	m := open(t)
	old := stored(t, m, "uid", "7")
	one, two := load(t, m, old), load(t, m, old)
	tokens := []string{old}
	for _, ctx := range []context.Context{one, two} {
		if err := m.RenewToken(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, ctx := range []context.Context{one, two} {
		if token, _, err := m.Commit(ctx); err == nil { // the second may be told that it lost
			tokens = append(tokens, token)
		}
	}
	alive := 0
	for _, token := range tokens {
		if m.GetString(load(t, m, token), "uid") == "7" {
			alive++
		}
	}
	if alive != 1 {
		t.Errorf("%d tokens of one login are alive", alive)
	}
}

func renewalThatFails(t testing.TB, open Harness) {
	s := newSite(t, open)
	s.mux.HandleFunc("/renew-broken", func(w http.ResponseWriter, r *http.Request) {
		if err := s.RenewToken(r.Context()); err != nil {
			t.Error(err)
		}
		s.Fail(true)
	})
	b := s.browser()
	b.visit("/put?uid=7")
	p := b.visit("/renew-broken")
	s.Fail(false)
	if p.status < 500 || p.setsCookie() {
		t.Errorf("%d, cookie %q", p.status, p.header["Set-Cookie"])
	}
	s.want(b, "uid", "7")
}
