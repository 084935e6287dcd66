package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/shardhop/shardhop/internal/lab"
)

// withKey sends a request with an Idempotency-Key, or several.
func (c *client) withKey(method, path, body string, keys ...string) answer {
	c.t.Helper()
	like := *c
	like.header = http.Header{"Idempotency-Key": keys}
	return like.do(method, path, body)
}

func (a answer) replayed() bool { return a.header.Get("Idempotency-Replayed") == "true" }

// wantGold wants an answer with so much gold, from now or from before.
func wantGold(t *testing.T, what string, got answer, gold string, replayed bool) {
	t.Helper()
	if got.status != http.StatusOK || got.field("gold") != gold || got.replayed() != replayed {
		t.Errorf("%s: %d %s, replayed %v; want %s gold, replayed %v", what, got.status, got.body, got.replayed(), gold, replayed)
	}
}

func TestAKeyMakesADeedHappenOnce(t *testing.T) {
	game := start(t)
	ann, bob := newClient(t, game.URL()), newClient(t, game.URL())
	shard := ann.register("ann").field("shard")
	bob.register("bob")
	wantGold(t, "first", ann.withKey("POST", "/api/dig", "", "k1"), "1", false)
	wantGold(t, "another key", ann.withKey("POST", "/api/dig", "", "k2"), "2", false)
	wantGold(t, "the first key again", ann.withKey("POST", "/api/dig", "", "k1"), "1", true)
	wantGold(t, "no key", ann.do("POST", "/api/dig", ""), "3", false)
	wantGold(t, "the same key, another player", bob.withKey("POST", "/api/dig", "", "k1"), "1", false)

	const gift = `{"to":"bob","amount":2}`
	wantGold(t, "transfer", ann.withKey("POST", "/api/transfer", gift, "k3"), "1", false)
	wantGold(t, "transfer again", ann.withKey("POST", "/api/transfer", gift, "k3"), "1", true)
	for _, tc := range []struct{ path, body, reason string }{
		{"/api/transfer", `{"to":"bob","amount":1}`, "another body"},
		{"/api/dig", "", "another path"},
	} {
		if got := ann.withKey("POST", tc.path, tc.body, "k3"); got.status != 422 || got.field("code") != "key_reused" {
			t.Errorf("%s: %d %s", tc.reason, got.status, got.body)
		}
	}

	newClient(t, game.AdminURL()).want(http.StatusOK, "POST", "/lab/"+shard+"/stop", "")
	moved := ann.withKey("POST", "/api/dig", "", "k1")
	wantGold(t, "after a rotation", moved, "1", true)
	if moved.shard() == shard {
		t.Error("a stopped shard served")
	}
	ann.want(http.StatusNoContent, "POST", "/api/logout", "")
	ann.want(http.StatusOK, "POST", "/api/login", account("ann"))
	wantGold(t, "after a new login", ann.withKey("POST", "/api/dig", "", "k2"), "2", true)
	if got := ann.do("GET", "/api/me", ""); got.field("gold") != "1" {
		t.Errorf("in the end: %s", got.body)
	}
}

func TestARefusedDeedLeavesItsKeyFree(t *testing.T) {
	ann := newClient(t, start(t).URL())
	ann.register("ann")
	newClient(t, ann.base).register("bob")
	const gift = `{"to":"bob","amount":1}`
	if got := ann.withKey("POST", "/api/transfer", gift, "k"); got.field("code") != "not_enough_gold" {
		t.Errorf("without gold: %d %s", got.status, got.body)
	}
	ann.want(http.StatusOK, "POST", "/api/dig", "")
	wantGold(t, "with gold", ann.withKey("POST", "/api/transfer", gift, "k"), "0", false)
	wantGold(t, "and again", ann.withKey("POST", "/api/transfer", gift, "k"), "0", true)
}

func TestKeysThatAreNone(t *testing.T) {
	ann := newClient(t, start(t).URL())
	ann.register("ann")
	for _, tc := range []struct {
		keys   []string
		status int
		reason string
	}{
		{[]string{strings.Repeat("k", 255)}, 200, "as long as can be"},
		{[]string{`"a b"`}, 200, "a quoted string, as the draft of the header has it"},
		{[]string{strings.Repeat("k", 256)}, 422, "too long"},
		{[]string{""}, 422, "empty"},
		{[]string{"kö"}, 422, "no ASCII"},
		{[]string{"a\tb"}, 422, "a tab"},
		{[]string{"a", "b"}, 422, "two keys"},
	} {
		got := ann.withKey("POST", "/api/dig", "", tc.keys...)
		if got.status != tc.status || tc.status == 422 && got.field("code") != "bad_key" {
			t.Errorf("%s: %d %s", tc.reason, got.status, got.body)
		}
	}
	if got := newClient(t, ann.base).withKey("POST", "/api/dig", "", "k"); got.status != http.StatusUnauthorized {
		t.Errorf("nobody's key: %d %s", got.status, got.body)
	}
	if got := ann.withKey("POST", "/api/dig", strings.Repeat("x", 20<<10), "large"); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: %d %s", got.status, got.body)
	}
}

func TestOneKeyAtTheSameTimeOnRealServers(t *testing.T) {
	game, _ := onGalera(t)
	ann := newClient(t, game.URL())
	ann.register("ann")
	var wg sync.WaitGroup
	for i := range 8 {
		c := newClientLike(ann)
		wg.Go(func() {
			for n := range 10 {
				got := c.withKey("POST", "/api/dig", "", fmt.Sprint("k", n))
				if got.status != http.StatusOK && got.field("code") != "key_in_progress" {
					t.Errorf("client %d, key %d: %d %s", i, n, got.status, got.body)
				}
			}
		})
	}
	wg.Wait()
	if got := ann.do("GET", "/api/me", ""); got.field("gold") != "10" {
		t.Errorf("ten keys: %s", got.body)
	}
}

// Three servers that know nothing of each other: a player's rows, and the
// answers to their keys, are on one of them.
func TestAHeroComesBackWithTheServer(t *testing.T) {
	servers := map[string]*lab.MariaDBServer{}
	environ := []string{"SHARDS=a,b,c", "REDIS_URL=" + lab.Redis(t).URL()}
	for _, shard := range []string{"a", "b", "c"} {
		servers[shard] = lab.MariaDB(t)
		environ = append(environ, "SHARD_"+strings.ToUpper(shard)+"_DSN="+servers[shard].DSN())
	}
	game := start(t, environ...)
	ann := newClient(t, game.URL())
	home := ann.register("ann").field("shard")
	wantGold(t, "at home", ann.withKey("POST", "/api/dig", "", "k1"), "1", false)

	servers[home].Kill()
	for _, call := range []struct{ method, path, body, key string }{
		{"POST", "/api/dig", "", "k1"},
		{"POST", "/api/dig", "", "k2"},
		{"GET", "/api/me", "", "unused"},
		{"POST", "/api/transfer", `{"to":"bea","amount":1}`, "k3"},
	} {
		got := ann.withKey(call.method, call.path, call.body, call.key)
		if got.status != http.StatusServiceUnavailable || got.field("code") != "player_elsewhere" || got.replayed() {
			t.Errorf("%s without %s: %d %s", call.path, home, got.status, got.body)
		}
	}
	if got := newClient(t, game.URL()).do("POST", "/api/register", account("ann")); got.field("code") != "name_taken" {
		t.Errorf("a second ann: %d %s", got.status, got.body)
	}
	newClient(t, game.URL()).register("bea")

	servers[home].Start()
	eventually(t, "ann is back", func() bool { return ann.do("GET", "/api/me", "").status == http.StatusOK })
	wantGold(t, "the key from before", ann.withKey("POST", "/api/dig", "", "k1"), "1", true)
	wantGold(t, "the key that was refused", ann.withKey("POST", "/api/dig", "", "k2"), "2", false)
	for shard, server := range servers {
		want := 0
		if shard == home {
			want = 1
		}
		var heroes int
		if err := lab.Open(t, server.DSN()).QueryRow("SELECT COUNT(*) FROM players WHERE name = 'ann'").Scan(&heroes); err != nil || heroes != want {
			t.Errorf("%s has %d of ann, %v; want %d", shard, heroes, err, want)
		}
	}
}
