package app_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestBadInputIsRefusedClearly(t *testing.T) {
	a := start(t)
	c := newClient(t, a.URL())
	c.register("carl")
	newClient(t, a.URL()).register("dora")
	long := strings.Repeat("x", 200)
	for _, tc := range []struct {
		method, path, body string
		status             int
		code, reason       string
	}{
		{"POST", "/api/register", `{"name":"ab","password":"12345678"}`, 422, "bad_name", "name too short"},
		{"POST", "/api/register", `{"name":"` + long + `","password":"12345678"}`, 422, "bad_name", "name too long"},
		{"POST", "/api/register", `{"name":"a b c","password":"12345678"}`, 422, "bad_name", "a blank in the name"},
		{"POST", "/api/register", `{"name":"eve/carl","password":"12345678"}`, 422, "bad_name", "a slash parts realm and name"},
		{"POST", "/api/register", `{"name":"zoë","password":"12345678"}`, 422, "bad_name", "a letter that is not ASCII"},
		{"POST", "/api/register", `{"name":7,"password":"12345678"}`, 422, "bad_name", "a number for a name"},
		{"POST", "/api/register", `{"name":"eve1","password":"1234567"}`, 422, "bad_password", "password too short"},
		{"POST", "/api/register", `{"name":"eve1","password":"` + long + `"}`, 422, "bad_password", "password too long"},
		{"POST", "/api/register", `{"name":"eve1"}`, 422, "bad_password", "no password"},
		{"POST", "/api/register", `{"name":"eve1","password":"12345678","realm":"west"}`, 422, "bad_realm", "no such realm"},
		{"POST", "/api/register", `{"name":"carl","password":"12345678"}`, 409, "name_taken", "the name is taken"},
		{"POST", "/api/register", `{"name":"eve1"`, 400, "bad_json", "half an object"},
		{"POST", "/api/register", `{"name":"eve1","password":"12345678"} {}`, 400, "bad_json", "two objects"},
		{"POST", "/api/register", `[]`, 400, "bad_json", "an array"},
		{"POST", "/api/register", `null`, 400, "bad_json", "nothing"},
		{"POST", "/api/register", "{\"name\":\"eve1\",\"password\":\"\xff2345678\"}", 400, "bad_json", "not UTF-8"},
		{"POST", "/api/register", `{"name":"eve1","password":"pass\ud800word"}`, 400, "bad_json", "half of a character"},
		{"POST", "/api/register", ``, 415, "not_json", "no body"},
		{"POST", "/api/register", `{"name":"` + strings.Repeat("x", 20<<10) + `"}`, 413, "body_too_large", "a large body"},
		{"POST", "/api/login", `{"name":"carl","password":"wrong password"}`, 401, "wrong_credentials", "wrong password"},
		{"POST", "/api/login", `{"name":"nobody","password":"wrong password"}`, 401, "wrong_credentials", "unknown name"},
		{"POST", "/api/login", `{"name":"carl","password":"12345678","realm":"x"}`, 422, "bad_realm", "no such realm"},
		{"POST", "/api/transfer", `{"to":"dora","amount":0}`, 422, "bad_amount", "nothing"},
		{"POST", "/api/transfer", `{"to":"dora","amount":-1}`, 422, "bad_amount", "less than nothing"},
		{"POST", "/api/transfer", `{"to":"dora","amount":1.5}`, 422, "bad_amount", "a part of a piece"},
		{"POST", "/api/transfer", `{"to":"dora","amount":1e3}`, 422, "bad_amount", "no whole number"},
		{"POST", "/api/transfer", `{"to":"dora","amount":"1"}`, 422, "bad_amount", "a text"},
		{"POST", "/api/transfer", `{"to":"dora","amount":99999999999999999999}`, 422, "bad_amount", "more than there can be"},
		{"POST", "/api/transfer", `{"to":"dora"}`, 422, "bad_amount", "no amount"},
		{"POST", "/api/transfer", `{"to":"dora","amount":5}`, 409, "not_enough_gold", "more than carl has"},
		{"POST", "/api/transfer", `{"to":"nobody","amount":1}`, 404, "no_such_player", "unknown name"},
		{"POST", "/api/transfer", `{"to":"carl","amount":1}`, 422, "bad_name", "to oneself"},
		{"POST", "/api/transfer", `{"to":"x","amount":1}`, 422, "bad_name", "no name"},
		{"GET", "/api/dig", ``, 405, "method_not_allowed", "reading must not dig"},
		{"GET", "/api/nothing", ``, 404, "not_found", "no such call"},
		{"GET", "/nothing", ``, 404, "not_found", "no such page"},
	} {
		got := c.do(tc.method, tc.path, tc.body)
		if got.status != tc.status || got.field("code") != tc.code {
			t.Errorf("%s: %s %s %.80s: %d %s, want %d %s", tc.reason, tc.method, tc.path, tc.body, got.status, got.body, tc.status, tc.code)
		}
		if kind := got.header.Get("Content-Type"); kind != "application/problem+json" {
			t.Errorf("%s: Content-Type %s", tc.reason, kind)
		}
	}
	for call, want := range map[string]string{"GET /api/dig": "POST", "POST /api/me": "GET, HEAD", "PUT /": "GET, HEAD", "POST /assets/game.js": "GET, HEAD"} {
		method, path, _ := strings.Cut(call, " ")
		if allow := c.do(method, path, "").header.Values("Allow"); len(allow) != 1 || allow[0] != want {
			t.Errorf("%s: Allow %q, want %s", call, allow, want)
		}
	}
	c.want(http.StatusOK, "HEAD", "/api/me", "")
	if taken := c.do("POST", "/api/register", account("carl")); taken.shard() == "" {
		t.Error("a name that is taken, and no word of the shard that has it")
	}
	if me := c.want(http.StatusOK, "GET", "/api/me", ""); me.field("name") != "carl" || me.field("gold") != "0" {
		t.Errorf("after all that: %s", me.body)
	}
}

func TestNobodyIsNotLoggedIn(t *testing.T) {
	a := start(t)
	c := newClient(t, a.URL())
	c.header.Set("Cookie", "session=made-up-token-made-up-token-made-up-token-0")
	for _, call := range []string{"GET /api/me", "POST /api/dig", "POST /api/transfer", "GET /api/events"} {
		method, path, _ := strings.Cut(call, " ")
		if got := c.do(method, path, ""); got.status != http.StatusUnauthorized || got.field("code") != "not_logged_in" {
			t.Errorf("%s: %d %s", call, got.status, got.body)
		} else if len(got.header.Values("Set-Cookie")) > 0 {
			t.Errorf("%s: a made-up token got the cookie %s", call, got.header.Get("Set-Cookie"))
		}
	}
	c.want(http.StatusNoContent, "POST", "/api/logout", "")
	if got := c.want(http.StatusOK, "GET", "/api/leaderboard", ""); got.body != "[]\n" {
		t.Errorf("leaderboard: %s", got.body)
	}
}

func TestHTMLWherePreferred(t *testing.T) {
	a := start(t)
	c := newClient(t, a.URL())
	c.header.Set("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	got := c.want(http.StatusUnauthorized, "GET", "/api/me", "")
	if kind := got.header.Get("Content-Type"); !strings.HasPrefix(kind, "text/html") || !strings.Contains(got.body, "<h1>") {
		t.Errorf("%s: %s", kind, got.body)
	}
}

func TestOtherSitesAreRefused(t *testing.T) {
	a := start(t)
	c := newClient(t, a.URL())
	c.register("fred")
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		c.header = http.Header{name: {value}}
		if got := c.do("POST", "/api/dig", ""); got.status != http.StatusForbidden || got.field("code") != "cross_origin" {
			t.Errorf("%s: %s: %d %s", name, value, got.status, got.body)
		}
	}
}

func TestLoginRenewsTheTokenAndLogoutEndsIt(t *testing.T) {
	a := start(t)
	c := newClient(t, a.URL())
	first := c.register("gina").header.Get("Set-Cookie")
	if !strings.Contains(first, "HttpOnly") || !strings.Contains(first, "SameSite=Lax") {
		t.Errorf("cookie: %s", first)
	}
	second := c.want(http.StatusOK, "POST", "/api/login", account("gina")).header.Get("Set-Cookie")
	if token(first) == token(second) {
		t.Error("the token is the same after the login")
	}
	for _, old := range []string{first, second} {
		if old == second {
			c.want(http.StatusOK, "GET", "/api/me", "")
			c.want(http.StatusNoContent, "POST", "/api/logout", "")
		}
		thief := newClient(t, a.URL())
		thief.header.Set("Cookie", token(old))
		thief.want(http.StatusUnauthorized, "GET", "/api/me", "")
	}
}

func token(setCookie string) string {
	pair, _, _ := strings.Cut(setCookie, ";")
	return pair
}

func TestNothingThatIsSentMovesTheRoute(t *testing.T) {
	a := start(t)
	for i, name := range []string{"hugo", "ines", "jack"} { // one on every shard
		c := newClient(t, a.URL())
		c.header = misleading("server_" + string(rune('1'+(i+1)%3)))
		shard := c.want(http.StatusCreated, "POST", "/api/register",
			`{"name":"`+name+`","password":"`+password+`","server":"server_9","db_server":"server_2","X-Shard":"server_3"}`).field("shard")
		for _, other := range []string{"server_1", "server_2", "server_3", "server_9"} {
			c.header = misleading(other)
			query := "?server=" + other + "&db_server=" + other + "&shard=" + other + "&X-Shard=" + other + "&realm=" + other
			body := `{"to":"kate","amount":1,"server":"` + other + `","db_server":"` + other + `","realm":"` + other + `"}`
			for _, got := range []answer{
				c.do("GET", "/api/me"+query, ""),
				c.do("POST", "/api/dig"+query, body),
				c.do("POST", "/api/transfer"+query, body),
				c.do("GET", "/api/leaderboard"+query, ""),
			} {
				if got.shard() != shard && got.status != http.StatusNotFound {
					t.Errorf("%s was on %s and got %q: %d %s", name, shard, got.shard(), got.status, got.body)
				}
			}
			if at := c.want(http.StatusOK, "GET", "/api/me", "").field("shard"); at != shard {
				t.Fatalf("%s was on %s and is on %s now", name, shard, at)
			}
		}
	}
}

// misleading is what a client may send to get to a shard.
func misleading(shard string) http.Header {
	return http.Header{
		"X-Shard":   {shard},
		"Db_server": {shard},
		"Db-Server": {shard},
		"Server":    {shard},
		"Cookie":    {"db_server=" + shard + "; server=" + shard + "; X-Shard=" + shard},
	}
}
