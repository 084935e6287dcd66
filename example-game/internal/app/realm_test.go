package app_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestRealmsKeepToThemselves(t *testing.T) {
	servers, environ := separate(t, "a", "b", "c")
	game := start(t, append(environ, "SHARD_A_GROUP=east", "SHARD_B_GROUP=east", "SHARD_C_GROUP=west", "SHARD_HOLD_TIMEOUT=off")...)
	in := func(realm string) string {
		return strings.TrimSuffix(account("ann"), "}") + `,"realm":"` + realm + `"}`
	}
	east, west := newClient(t, game.URL()), newClient(t, game.URL())
	if got := east.do("POST", "/api/register", account("ann")); got.field("code") != "bad_realm" {
		t.Errorf("no realm: %d %s", got.status, got.body)
	}
	if got := east.want(http.StatusCreated, "POST", "/api/register", in("east")); got.shard() == "c" {
		t.Error("ann of the east is on c")
	}
	if got := west.want(http.StatusCreated, "POST", "/api/register", in("west")); got.shard() != "c" {
		t.Errorf("ann of the west is on %s", got.shard())
	}
	west.want(http.StatusOK, "POST", "/api/dig", "")

	do(t, servers["a"], "a", "stop")
	do(t, servers["b"], "b", "stop")
	got := east.do("POST", "/api/dig", "")
	if got.status != http.StatusServiceUnavailable || got.shard() == "c" || got.header.Get("Retry-After") == "" {
		t.Errorf("the east is down: %d %s %s", got.status, got.shard(), got.body)
	}
	if me := west.want(http.StatusOK, "GET", "/api/me", ""); me.field("gold") != "1" {
		t.Errorf("the west: %s", me.body)
	}
	// A session that signs in to another realm plays there, and nowhere else.
	east.want(http.StatusOK, "POST", "/api/login", in("west"))
	if me := east.want(http.StatusOK, "GET", "/api/me", ""); me.field("gold") != "1" || me.shard() != "c" {
		t.Errorf("signed in to the west: %s on %s", me.body, me.shard())
	}
}

func TestEmbeddedRealmsShareNoRows(t *testing.T) {
	game := start(t, "SHARD_SERVER_1_GROUP=east", "SHARD_SERVER_2_GROUP=east", "SHARD_SERVER_3_GROUP=west")
	in := func(realm string) string {
		return strings.TrimSuffix(account("ann"), "}") + `,"realm":"` + realm + `"}`
	}
	east, west := newClient(t, game.URL()), newClient(t, game.URL())
	shard := east.want(http.StatusCreated, "POST", "/api/register", in("east")).shard()
	east.want(http.StatusOK, "POST", "/api/dig", "")
	if got := west.want(http.StatusCreated, "POST", "/api/register", in("west")); got.shard() != "server_3" {
		t.Errorf("ann of the west is on %s", got.shard())
	}
	if me := west.want(http.StatusOK, "GET", "/api/me", ""); me.field("gold") != "0" {
		t.Errorf("the west has the gold of the east: %s", me.body)
	}
	newClient(t, game.AdminURL()).want(http.StatusOK, "POST", "/lab/"+shard+"/stop", "")
	if me := east.want(http.StatusOK, "GET", "/api/me", ""); me.field("gold") != "1" || me.shard() == shard {
		t.Errorf("the rest of the east: %s", me.body)
	}
}
