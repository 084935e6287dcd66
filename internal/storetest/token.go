package storetest

import (
	"slices"
	"testing"
	"time"
)

func tokenCases() []Case {
	return []Case{
		{"renewal gives a new token with the same values and ends the old one", renewalMovesValues},
		{"renewal starts the lifetime anew", renewalRestartsTheLifetime},
		{"destroy ends the session and empties the request's", destroyEnds},
		{"a value put after destroy begins a new session", putAfterDestroy},
		{"merging takes the other session's values and ends it", mergeTakesOver},
		{"merging with itself or with nothing changes nothing", mergeOfNothing},
		{"tokens are hashed in the store on demand", hashedTokens},
	}
}

func renewalMovesValues(t testing.TB, open Harness) {
	m := open(t)
	old := stored(t, m, "a", "1", "b", "2")
	ctx := load(t, m, old)
	m.Put(ctx, "b", "3")
	if err := m.RenewToken(ctx); err != nil {
		t.Fatal(err)
	}
	m.Put(ctx, "c", "4")
	renewed := commit(ctx, t, m)
	if renewed == old || m.Token(ctx) != renewed {
		t.Errorf("the token is %q, the context says %q", renewed, m.Token(ctx))
	}
	if keys := m.Keys(load(t, m, old)); len(keys) != 0 {
		t.Errorf("the old token still gives %v", keys)
	}
	ctx = load(t, m, renewed)
	if m.GetString(ctx, "a") != "1" || m.GetString(ctx, "b") != "3" || m.GetString(ctx, "c") != "4" {
		t.Errorf("the new session holds %v", m.Keys(ctx))
	}
	if n := m.Stored(t); n != 1 {
		t.Errorf("the store holds %d sessions", n)
	}
}

func renewalRestartsTheLifetime(t testing.TB, open Harness) {
	m := open(t)
	ctx := load(t, m, "")
	m.SetDeadline(ctx, time.Now().Add(time.Minute))
	ctx = load(t, m, commit(ctx, t, m))
	if err := m.RenewToken(ctx); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(m.Deadline(ctx)); left < m.Settings.Lifetime-time.Minute {
		t.Errorf("%v left after the renewal", left)
	}
}

func destroyEnds(t testing.TB, open Harness) {
	m := open(t)
	token := stored(t, m, "a", "1")
	other := stored(t, m, "a", "other")
	ctx := load(t, m, token)
	if err := m.Destroy(ctx); err != nil {
		t.Fatal(err)
	}
	if len(m.Keys(ctx)) != 0 || m.Token(ctx) != "" {
		t.Errorf("the context still has keys %v, token %q", m.Keys(ctx), m.Token(ctx))
	}
	if keys := m.Keys(load(t, m, token)); len(keys) != 0 {
		t.Errorf("the token still gives %v", keys)
	}
	if m.GetString(load(t, m, other), "a") != "other" || m.Stored(t) != 1 {
		t.Errorf("another session suffered; %d are stored", m.Stored(t))
	}
}

func putAfterDestroy(t testing.TB, open Harness) {
	m := open(t)
	token := stored(t, m, "a", "1")
	ctx := load(t, m, token)
	if err := m.Destroy(ctx); err != nil {
		t.Fatal(err)
	}
	m.Put(ctx, "b", "2")
	fresh := commit(ctx, t, m)
	if fresh == token {
		t.Error("the destroyed session's token is used again")
	}
	if got := m.Keys(load(t, m, fresh)); !slices.Equal(got, []string{"b"}) {
		t.Errorf("the new session holds %v", got)
	}
}

func mergeTakesOver(t testing.TB, open Harness) {
	m := open(t)
	other := stored(t, m, "theirs", "1", "both", "theirs")
	mine := stored(t, m, "mine", "1", "both", "mine")
	ctx := load(t, m, mine)
	if err := m.MergeSession(ctx, other); err != nil {
		t.Fatal(err)
	}
	commit(ctx, t, m)
	ctx = load(t, m, mine)
	if m.GetString(ctx, "theirs") != "1" || m.GetString(ctx, "mine") != "1" || m.GetString(ctx, "both") != "theirs" {
		t.Errorf("merged: theirs %v, mine %v, both %v", m.Get(ctx, "theirs"), m.Get(ctx, "mine"), m.Get(ctx, "both"))
	}
	if keys := m.Keys(load(t, m, other)); len(keys) != 0 {
		t.Errorf("the other token still gives %v", keys)
	}
}

func mergeOfNothing(t testing.TB, open Harness) {
	m := open(t)
	token := stored(t, m, "a", "1")
	ctx := load(t, m, token)
	for _, other := range []string{token, "made-up"} {
		if err := m.MergeSession(ctx, other); err != nil {
			t.Errorf("merging with %q: %v", other, err)
		}
	}
	commit(ctx, t, m)
	if got := m.Keys(load(t, m, token)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the session holds %v", got)
	}
}

func hashedTokens(t testing.TB, open Harness) {
	m := open(t)
	plain := stored(t, m, "a", "1")
	m.Settings.HashTokenInStore = true
	if keys := m.Keys(load(t, m, plain)); len(keys) != 0 {
		t.Errorf("a token that is not hashed is found: %v", keys)
	}
	token := stored(t, m, "a", "2")
	ctx := load(t, m, token)
	if m.GetString(ctx, "a") != "2" || m.Token(ctx) != token {
		t.Errorf("a is %q, the token is kept: %v", m.GetString(ctx, "a"), m.Token(ctx) == token)
	}
	if err := m.RenewToken(ctx); err != nil {
		t.Fatal(err)
	}
	renewed := commit(ctx, t, m)
	if len(m.Keys(load(t, m, token))) != 0 || m.GetString(load(t, m, renewed), "a") != "2" {
		t.Error("renewal with hashed tokens lost the values or kept the old token")
	}
	if err := m.Destroy(load(t, m, renewed)); err != nil {
		t.Fatal(err)
	}
	if n := m.Stored(t); n != 1 {
		t.Errorf("%d sessions are stored, want the plain one", n)
	}
}
