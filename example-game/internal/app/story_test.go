package app_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// The story that the game is there to tell.
func TestPlayerPlaysOnWhenTheServerDies(t *testing.T) {
	a := start(t)
	operator := newClient(t, a.AdminURL())
	ann := newClient(t, a.URL())
	ann.register("ann")
	for range 5 {
		ann.want(http.StatusOK, "POST", "/api/dig", "")
	}
	before := ann.want(http.StatusOK, "GET", "/api/me", "")
	if before.field("gold") != "5" || before.shard() == "" || before.shard() != before.field("shard") {
		t.Fatalf("before: %s on %s", before.body, before.shard())
	}

	operator.want(http.StatusOK, "POST", "/lab/"+before.shard()+"/stop", "")
	stopped := ann.want(http.StatusOK, "POST", "/api/dig", "")
	if stopped.field("gold") != "6" {
		t.Errorf("after the stop: %s, want gold 6", stopped.body)
	}
	if stopped.shard() == before.shard() || stopped.shard() == "" {
		t.Errorf("after the stop: served by %q, as before", stopped.shard())
	}

	operator.want(http.StatusOK, "POST", "/lab/"+before.shard()+"/start", "")
	operator.want(http.StatusOK, "POST", "/lab/"+stopped.shard()+"/freeze", "")
	began := time.Now()
	frozen := ann.want(http.StatusOK, "POST", "/api/dig", "")
	if frozen.field("gold") != "7" || frozen.shard() == stopped.shard() {
		t.Errorf("after the freeze: %s on %s", frozen.body, frozen.shard())
	}
	if took := time.Since(began); took > 12*time.Second { // the budget is 10s
		t.Errorf("the frozen node cost %v", took)
	}
	me := ann.want(http.StatusOK, "GET", "/api/me", "")
	if me.field("name") != "ann" || me.field("home") != before.field("home") || me.field("gold") != "7" {
		t.Errorf("in the end: %s", me.body)
	}
}

func TestReadingMovesOnInsideTheRequest(t *testing.T) {
	a := start(t)
	operator, bob := newClient(t, a.AdminURL()), newClient(t, a.URL())
	bob.register("bob")
	for _, tc := range []struct{ verb, mend, path string }{
		{"stop", "start", "/api/me"},
		{"freeze", "thaw", "/api/me"},
		{"freeze", "thaw", "/api/leaderboard"},
	} {
		// A connection that was just used is not asked whether it still lives.
		shard := bob.want(http.StatusOK, "GET", tc.path, "").shard()
		operator.want(http.StatusOK, "POST", "/lab/"+shard+"/"+tc.verb, "")
		if got := bob.want(http.StatusOK, "GET", tc.path, ""); got.shard() == shard || got.shard() == "" {
			t.Errorf("%s, %s: served by %q as before", tc.verb, tc.path, got.shard())
		}
		operator.want(http.StatusOK, "POST", "/lab/"+shard+"/"+tc.mend, "")
		awaitState(t, operator, shard, "up")
	}
}

func TestParallelDigsLoseNothing(t *testing.T) {
	const players, digs = 20, 10
	a := start(t)
	var wg sync.WaitGroup
	for i := range players {
		c := newClient(t, a.URL())
		c.register(fmt.Sprintf("digger-%d", i))
		wg.Go(func() {
			for range digs {
				if got := c.do("POST", "/api/dig", ""); got.status != http.StatusOK {
					t.Errorf("dig: %d %s", got.status, got.body)
				}
			}
			if got := c.do("GET", "/api/me", "").field("gold"); got != strconv.Itoa(digs) {
				t.Errorf("gold = %s, want %d", got, digs)
			}
		})
	}
	wg.Wait()
}

func TestTransfersKeepTheSum(t *testing.T) {
	a := start(t)
	names := []string{"amy", "ben", "cat"}
	clients := map[string]*client{}
	for _, name := range names {
		clients[name] = newClient(t, a.URL())
		clients[name].register(name)
		for range 5 {
			clients[name].want(http.StatusOK, "POST", "/api/dig", "")
		}
	}
	var wg sync.WaitGroup
	for i, name := range names {
		for _, to := range []string{names[(i+1)%3], names[(i+2)%3]} {
			wg.Go(func() {
				for range 5 {
					got := clients[name].do("POST", "/api/transfer", `{"to":"`+to+`","amount":2}`)
					if got.status != http.StatusOK && got.status != http.StatusConflict {
						t.Errorf("transfer: %d %s", got.status, got.body)
					}
				}
			})
		}
	}
	wg.Wait()
	sum := 0
	for _, name := range names {
		gold, err := strconv.Atoi(clients[name].do("GET", "/api/me", "").field("gold"))
		if err != nil || gold < 0 {
			t.Errorf("%s has %d gold, %v", name, gold, err)
		}
		sum += gold
	}
	if sum != 15 {
		t.Errorf("the sum is %d, want 15", sum)
	}
}
