package web_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/shardhop/shardhop/example-game/internal/web"
)

// deeds are the calls that must not be done twice.
var deeds = regexp.MustCompile(`(\w+)\((?:"POST", *)?"/api/(?:dig|transfer)"`)

// The script that browsers get names each deed by a key of its own, and asks again
// with the same one while nobody can say whether it was done. No browser runs here:
// this holds what the script says.
func TestThePageRepeatsADeedWithItsKey(t *testing.T) {
	script := get(web.Assets(), "/assets/game.js").Body.String()
	calls := deeds.FindAllStringSubmatch(script, -1)
	if n := strings.Count(script, "/api/dig") + strings.Count(script, "/api/transfer"); len(calls) != n || n < 2 {
		t.Errorf("%d of %d mentions of a deed are calls", len(calls), n)
	}
	for _, call := range calls {
		if call[1] != "once" {
			t.Errorf("%s is done without a key", call[0])
		}
	}
	before, loop, found := strings.Cut(function(t, script, "once"), "for (")
	if !found || strings.Count(before, "const key = newKey();") != 1 || strings.Contains(loop, "newKey") {
		t.Error("once does not make one key for all of its tries")
	}
	if !strings.Contains(loop, `call("POST", path, form, key)`) || !strings.Contains(loop, "!isOpen(error)") {
		t.Error("once does not try again with the key")
	}
	if !strings.Contains(function(t, script, "call"), `options.headers["Idempotency-Key"] = key;`) {
		t.Error("call does not send the key")
	}
	for _, open := range []string{"!error.status", "error.status >= 500", `error.code === "key_in_progress"`} {
		if !strings.Contains(function(t, script, "isOpen"), open) {
			t.Errorf("isOpen does not know %s", open)
		}
	}
}

// function is the text of a function of the script, which ends with the first brace
// that is not indented.
func function(t *testing.T, script, name string) string {
	t.Helper()
	_, text, found := strings.Cut(script, "function "+name+"(")
	text, _, ends := strings.Cut(text, "\n}\n")
	if !found || !ends {
		t.Fatalf("the script has no function %s", name)
	}
	return text
}
