package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// shardInfo is what operators see of a shard, in part.
type shardInfo struct {
	Shard  string `json:"shard"`
	State  string `json:"state"`
	Counts struct {
		Leases int `json:"leases"`
	} `json:"counts"`
}

func shardInfos(t *testing.T, operator *client) map[string]shardInfo {
	t.Helper()
	var all []shardInfo
	body := operator.want(http.StatusOK, "GET", "/shards", "").body
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	named := map[string]shardInfo{}
	for _, s := range all {
		named[s.Shard] = s
	}
	return named
}

func awaitState(t *testing.T, operator *client, shard, state string) {
	t.Helper()
	eventually(t, shard+" is "+state, func() bool { return shardInfos(t, operator)[shard].State == state })
}

func TestAFrozenShardThatIsKnownIsNotWaitedFor(t *testing.T) {
	servers, environ := separate(t, "a", "b", "c")
	game := start(t, environ...)
	operator, ann := newClient(t, game.AdminURL()), newClient(t, game.URL())
	home := ann.register("ann").field("shard")
	ann.want(http.StatusOK, "POST", "/api/dig", "")
	for shard := range servers {
		if shard != home {
			do(t, servers[shard], shard, "freeze")
			awaitState(t, operator, shard, "down")
		}
	}
	for _, tc := range []struct {
		path, body string
		status     int
		reason     string
	}{
		{"/api/register", account("bea"), 201, "a new name"},
		{"/api/login", account("ann"), 200, "a name that is there"},
		{"/api/login", account("nobody"), 401, "a name that is not"},
		{"/api/transfer", `{"to":"nobody","amount":1}`, 404, "nobody to give to"},
	} {
		began := time.Now()
		newClientLike(ann).want(tc.status, "POST", tc.path, tc.body)
		if took := time.Since(began); took > 2*time.Second { // an attempt takes three
			t.Errorf("%s: %s took %v", tc.path, tc.reason, took)
		}
		if tc.path == "/api/login" && tc.status == http.StatusOK {
			ann.want(http.StatusOK, "POST", "/api/login", tc.body)
		}
	}
}

// How long a refused login takes must not tell whether the name is there, so
// both ask the same.
func TestARefusedLoginAsksEveryShardOnce(t *testing.T) {
	_, environ := separate(t, "a", "b", "c")
	game := start(t, environ...)
	operator := newClient(t, game.AdminURL())
	home := newClient(t, game.URL()).register("ann").field("shard")
	eventually(t, "nothing but logins takes leases", func() bool {
		for shard, now := range shardInfos(t, operator) {
			due := 2 // for the tables, and for the search of register
			if shard == home {
				due++ // for the row
			}
			if now.Counts.Leases < due {
				return false
			}
		}
		return true
	})
	for _, name := range []string{"ann", "nobody"} {
		before := shardInfos(t, operator)
		newClient(t, game.URL()).want(http.StatusUnauthorized, "POST", "/api/login", `{"name":"`+name+`","password":"not that one"}`)
		for shard, now := range shardInfos(t, operator) {
			if leases := now.Counts.Leases - before[shard].Counts.Leases; leases != 1 {
				t.Errorf("login of %s: %d leases of %s, want 1", name, leases, shard)
			}
		}
	}
}

// Whoever signs in gets a session, even when one session does so several times
// at once.
func TestParallelSignInsFromOneSession(t *testing.T) {
	const parallel = 6
	game := start(t)
	ann := newClient(t, game.URL())
	ann.register("ann")
	for path, form := range map[string]func(i int) string{
		"/api/login":    func(int) string { return account("ann") },
		"/api/register": func(i int) string { return account(fmt.Sprintf("new-%d", i)) },
	} {
		old := newClientLike(ann)
		old.want(http.StatusOK, "POST", "/api/login", account("ann"))
		var wg sync.WaitGroup
		var mu sync.Mutex
		tokens := map[string]bool{}
		for i := range parallel {
			c := newClientLike(old)
			wg.Go(func() {
				got := c.do("POST", path, form(i))
				cookie := got.header.Get("Set-Cookie")
				if got.status >= 300 || cookie == "" {
					t.Errorf("%s: %d %s, cookie %q", path, got.status, got.body, cookie)
					return
				}
				if me := c.do("GET", "/api/me", ""); me.field("name") != got.field("name") {
					t.Errorf("%s: signed in as %s, and am %s", path, got.body, me.body)
				}
				mu.Lock()
				defer mu.Unlock()
				tokens[token(cookie)] = true
			})
		}
		wg.Wait()
		if len(tokens) != parallel {
			t.Errorf("%s: %d tokens for %d sign-ins", path, len(tokens), parallel)
		}
		old.want(http.StatusUnauthorized, "GET", "/api/me", "")
	}
}
