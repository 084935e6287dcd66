package sessionstore_test

import (
	"net/http"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/sessionstore"
)

func TestAtomicKeysConflictAsOne(t *testing.T) {
	tests := []struct {
		name, reason, slow, quick string
		want                      map[string]string
	}{
		{"each changes one of them", "the later save wins whole", "/slow?uid=8", "/put?role=admin",
			map[string]string{"d:uid": text("8"), "d:role": text("player"), "d:realm": text("east")}},
		{"both change both", "the later save wins whole", "/slow?uid=8&role=guest", "/put?uid=9&role=admin",
			map[string]string{"d:uid": text("8"), "d:role": text("guest"), "d:realm": text("east")}},
		{"the quick one adds a key", "the slow one knows of none, so there is none", "/slow?uid=8", "/put?clan=red",
			map[string]string{"d:uid": text("8"), "d:role": text("player"), "d:clan": ""}},
		{"another key changes", "the group is as it was, and the quick one's stands", "/slow?theme=dark", "/put?uid=9&role=admin",
			map[string]string{"d:uid": text("9"), "d:role": text("admin"), "d:theme": text("dark")}},
		{"another key changed meanwhile", "keys outside of the group are on their own", "/slow?uid=8", "/put?theme=dark",
			map[string]string{"d:uid": text("8"), "d:role": text("player"), "d:theme": text("dark")}},
		{"the slow one removes one", "the rest of the group goes along", "/slow?remove=role", "/put?uid=9",
			map[string]string{"d:uid": text("7"), "d:role": "", "d:realm": text("east")}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
				var s *site
				g := newGate()
				s = newSite(t, rdb, map[string]http.HandlerFunc{"/slow": func(w http.ResponseWriter, r *http.Request) {
					g.wait()
					s.sessions.Remove(r.Context(), r.URL.Query().Get("remove"))
					s.put(w, r)
					s.sessions.Remove(r.Context(), "remove")
				}})
				s.sessions.Atomic("uid", "role", "realm", "clan")
				s.sessions.Atomic("x", "y")
				b := s.browser()
				b.visit("/put?uid=7&role=player&realm=east&x=1")
				g.during(b, test.slow, func() { b.visit(test.quick) })
				hash := s.hash(b.key())
				for field, want := range test.want {
					if hash[field] != want {
						t.Errorf("field %s is %q, want %q: %s", field, hash[field], want, test.reason)
					}
				}
			})
		})
	}
}

func TestAtomicPanicsOnNonsense(t *testing.T) {
	for name, keys := range map[string][]string{
		"one key":                  {"a"},
		"the same key twice":       {"a", "a"},
		"a key of another group":   {"b", "uid"},
		"the last key is anothers": {"b", "c", "role"},
	} {
		t.Run(name, func(t *testing.T) {
			m := sessionstore.New(miniClient(t), patient)
			m.Atomic("uid", "role")
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			m.Atomic(keys...)
		})
	}
}
