package storetest

import (
	"net/http"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/lab"
)

func logoutCases() []Case {
	return []Case{
		{"logged out stays logged out when a slow request stores", loggedOutDespite(0, putSlowly)},
		{"logged out stays logged out when a slow request stores, with idle timeout", loggedOutDespite(time.Minute, putSlowly)},
		{"logged out stays logged out when a slow request reads", loggedOutDespite(0, getSlowly)},
		{"logged out stays logged out when a long poll refreshes the idle time", loggedOutDespite(soon, getSlowly)},
		{"logged out stays logged out when a slow request moves the deadline", loggedOutDespite(0, moveDeadline)},
		{"logged out stays logged out when a slow request commits by itself", loggedOutDespite(0, commitByItself)},
		{"a session that ended stays ended when a slow request saves", endedStaysEnded},
		{"a deadline in the past ends the session", pastDeadline},
		{"a session renewed and destroyed in one request leaves nothing", renewedAndDestroyed},
		{"a request that destroys and then stores gets a session of its own", destroysAndStores},
		{"a session merged into another stays ended when a slow request stores", mergedMeanwhile},
	}
}

// slowly is what a request does when its gate opens.
type slowly func(s *site, w http.ResponseWriter, r *http.Request)

var (
	putSlowly slowly = (*site).put
	getSlowly slowly = (*site).get

	moveDeadline slowly = func(s *site, _ http.ResponseWriter, r *http.Request) {
		s.SetDeadline(r.Context(), time.Now().Add(time.Hour))
	}
	commitByItself slowly = func(s *site, w http.ResponseWriter, r *http.Request) {
		s.put(w, r)
		if _, _, err := s.Commit(r.Context()); err == nil {
			s.t.Error("the commit of a session that is gone tells no error")
		}
	}
)

func loggedOutDespite(idle time.Duration, act slowly) func(testing.TB, Harness) {
	return func(t testing.TB, open Harness) {
		s := newSite(t, open)
		s.Settings.IdleTimeout = idle
		slow := s.gated("/slow", func(w http.ResponseWriter, r *http.Request) { act(s, w, r) })
		b := s.browser()
		b.visit("/put?uid=7")
		token := b.token()
		answer := slow.during(b, "/slow?k=v", func() { b.visit("/logout") })
		if answer.status != http.StatusOK || answer.setsCookie() {
			t.Errorf("the slow answer: %d, cookie %q", answer.status, answer.header["Set-Cookie"])
		}
		s.wantStored(0)
		b.plant(token)
		s.want(b, "uid", "", "k", "")
	}
}

func endedStaysEnded(t testing.TB, open Harness) {
	s := newSite(t, open)
	s.Settings.Lifetime = soon
	slow := s.gated("/slow", s.put)
	b := s.browser()
	b.visit("/put?uid=7")
	token := b.token()
	answer := slow.during(b, "/slow?k=v", func() {
		<-time.After(time.Until(s.Deadline(s.load(token))) + 10*time.Millisecond)
	})
	if answer.setsCookie() {
		t.Errorf("the slow answer sets %q", answer.header["Set-Cookie"])
	}
	b.plant(token)
	s.want(b, "uid", "", "k", "")
	// A store's own clock began when the first save reached it.
	lab.Eventually(t, ending, "nothing is left", func() bool { return s.Stored(t) == 0 })
}

func pastDeadline(t testing.TB, open Harness) {
	s := newSite(t, open)
	s.mux.HandleFunc("/past", func(w http.ResponseWriter, r *http.Request) {
		s.put(w, r)
		s.SetDeadline(r.Context(), time.Now().Add(-time.Hour))
	})
	b := s.browser()
	b.visit("/past?a=1")
	s.wantStored(0)
	b.visit("/put?a=1")
	token := b.token()
	b.visit("/past?a=2")
	s.wantStored(0)
	b.plant(token)
	s.want(b, "a", "")
}

func renewedAndDestroyed(t testing.TB, open Harness) {
	s := newSite(t, open)
	s.mux.HandleFunc("/both", func(w http.ResponseWriter, r *http.Request) {
		s.call(s.RenewToken)(w, r)
		s.put(w, r)
		s.call(s.Destroy)(w, r)
	})
	b := s.browser()
	b.visit("/put?uid=7")
	b.visit("/both?a=1")
	if b.token() != "" {
		t.Error("the browser still has a token")
	}
	s.wantStored(0)
}

func destroysAndStores(t testing.TB, open Harness) {
	s := newSite(t, open)
	s.mux.HandleFunc("/switch", func(w http.ResponseWriter, r *http.Request) {
		s.call(s.Destroy)(w, r)
		s.put(w, r)
	})
	b := s.browser()
	b.visit("/put?uid=7&role=admin")
	old := b.token()
	b.visit("/switch?uid=8")
	if b.token() == old {
		t.Error("the old token goes on")
	}
	s.want(b, "uid", "8", "role", "")
	s.wantStored(1)
}

func mergedMeanwhile(t testing.TB, open Harness) {
	s := newSite(t, open)
	slow := s.gated("/slow", s.put)
	b, other := s.browser(), s.browser()
	b.visit("/put?uid=7")
	other.visit("/put?name=Ada")
	token := b.token()
	answer := slow.during(b, "/slow?late=1", func() {
		ctx := s.load(other.token())
		if err := s.MergeSession(ctx, token); err != nil {
			t.Error(err)
		}
		commit(ctx, t, s.Subject)
	})
	if answer.setsCookie() {
		t.Errorf("the slow answer sets %q", answer.header["Set-Cookie"])
	}
	s.want(other, "name", "Ada", "uid", "7")
	s.wantStored(1)
}
