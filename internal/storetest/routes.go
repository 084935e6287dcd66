package storetest

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shardhop/shardhop/internal/route"
)

func routeCases() []Case {
	return []Case{
		{"the route is read as a value and written by claims only", routeIsReadOnly},
		{"thirty first requests at once get one shard", thirtyFirstRequests},
		{"a slow save does not move the route back", slowSaveLeavesTheRoute},
		{"who loses a claim follows the winner", loserFollows},
		{"a claim on a session logged out meanwhile leaves nothing", claimAfterLogout},
		{"a renewed token carries the route", renewalCarriesTheRoute},
		{"a new session is created with the route claimed for it", newSessionWithRoute},
		{"a route alone makes no session", routeAloneMakesNothing},
		{"a claim outlives the client's disconnect", claimOutlivesTheClient},
	}
}

// routed opens a site whose manager keeps routes.
func routed(t testing.TB, open Harness) *site {
	t.Helper()
	s := newSite(t, open)
	if s.Routes == nil {
		t.Fatal("the manager keeps no routes")
	}
	return s
}

func routeIsReadOnly(t testing.TB, open Harness) {
	s := routed(t, open)
	b := s.browser()
	b.visit("/put?uid=7")
	s.want(b, "db_server", "")
	if got := b.visit("/claim?shard=server_1").body; got != "server_1" {
		t.Errorf("claimed %q", got)
	}
	b.visit("/put?db_server=server_9&a=1")
	s.want(b, "db_server", "server_1", "a", "1")
	b.visit("/claim?shard=server_2")
	want := route.Route{Shard: "server_2", Home: "server_1", Epoch: 2}
	if got := s.route(b.token()); got != want {
		t.Errorf("the route is %+v, want %+v", got, want)
	}
}

func thirtyFirstRequests(t testing.TB, open Harness) {
	s := routed(t, open)
	var n atomic.Int64
	var loaded sync.WaitGroup
	paths := make([]string, 30)
	loaded.Add(len(paths))
	s.mux.HandleFunc("/first", func(w http.ResponseWriter, r *http.Request) {
		loaded.Done()
		loaded.Wait()
		r.URL.RawQuery = fmt.Sprintf("shard=server_%d", n.Add(1))
		s.claim(w, r)
	})
	for i := range paths {
		paths[i] = "/first"
	}
	b := s.browser()
	b.visit("/put?uid=7")
	pages := b.all(paths)
	stands := s.route(b.token())
	if stands.Epoch != 1 || stands.Home != stands.Shard {
		t.Errorf("the route is %+v", stands)
	}
	for i, p := range pages {
		if p.body != stands.Shard {
			t.Errorf("request %d went to %q, the route is %+v", i, p.body, stands)
		}
	}
}

func slowSaveLeavesTheRoute(t testing.TB, open Harness) {
	s := routed(t, open)
	slow := s.gated("/slow", s.put)
	b := s.browser()
	b.visit("/put?uid=7")
	b.visit("/claim?shard=A")
	slow.during(b, "/slow?a=1", func() {
		b.visit("/claim?shard=B")
		b.visit("/put?b=2")
	})
	s.want(b, "a", "1", "b", "2", "db_server", "B")
}

func loserFollows(t testing.TB, open Harness) {
	s := routed(t, open)
	slow := s.gated("/slow", s.claim)
	b := s.browser()
	b.visit("/put?uid=7")
	b.visit("/claim?shard=A")
	answer := slow.during(b, "/slow?shard=C", func() { b.visit("/claim?shard=B") })
	if answer.body != "B" {
		t.Errorf("the loser went to %q", answer.body)
	}
	if got := s.route(b.token()); got.Shard != "B" || got.Epoch != 2 {
		t.Errorf("the route is %+v", got)
	}
}

func claimAfterLogout(t testing.TB, open Harness) {
	s := routed(t, open)
	slow := s.gated("/slow", s.claim)
	b := s.browser()
	b.visit("/put?uid=7")
	b.visit("/claim?shard=A")
	answer := slow.during(b, "/slow?shard=B", func() { b.visit("/logout") })
	if answer.status == http.StatusOK || answer.setsCookie() {
		t.Errorf("claimed the route of a session that is gone: %d %s", answer.status, answer.body)
	}
	s.wantStored(0)
}

func renewalCarriesTheRoute(t testing.TB, open Harness) {
	s := routed(t, open)
	slow := gatedRenewal(s)
	b := s.browser()
	b.visit("/put?uid=7")
	b.visit("/claim?shard=A")
	b.visit("/renew")
	s.want(b, "db_server", "A")
	slow.during(b, "/slow?a=1", func() { b.visit("/claim?shard=B") })
	s.want(b, "db_server", "B")
	if got := b.visit("/claim?shard=C").body; got != "C" {
		t.Errorf("a claim after the renewals gives %q", got)
	}
	if got := s.route(b.token()); got.Epoch != 3 || got.Home != "A" {
		t.Errorf("the route is %+v", got)
	}
}

func newSessionWithRoute(t testing.TB, open Harness) {
	s := routed(t, open)
	want := route.Route{Group: "east", Shard: "A", Home: "A", Epoch: 1}
	s.mux.HandleFunc("/first", func(w http.ResponseWriter, r *http.Request) {
		if _, err := s.Routes.Claim(r.Context(), want); err != nil {
			t.Error(err)
		}
		s.put(w, r)
	})
	b := s.browser()
	b.visit("/first?uid=7")
	if got := s.route(b.token()); got != want {
		t.Errorf("the route is %+v, want %+v", got, want)
	}
}

func routeAloneMakesNothing(t testing.TB, open Harness) {
	s := routed(t, open)
	b := s.browser()
	if p := b.visit("/claim?shard=A"); p.body != "A" || p.setsCookie() {
		t.Errorf("claimed %q, cookie %q", p.body, p.header["Set-Cookie"])
	}
	s.wantStored(0)
}

func claimOutlivesTheClient(t testing.TB, open Harness) {
	s := routed(t, open)
	token := stored(t, s.Subject, "uid", "7")
	ctx, leave := context.WithCancel(s.load(token))
	leave()
	if _, err := s.Routes.Claim(ctx, route.Route{Shard: "A", Home: "A"}); err != nil {
		t.Error(err)
	}
	if got := s.route(token); got.Shard != "A" {
		t.Errorf("the route is %+v", got)
	}
}
