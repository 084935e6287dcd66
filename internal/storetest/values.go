package storetest

import (
	"encoding/gob"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// Player stands for an application's own type, which gob has to know.
type Player struct {
	Name  string
	Level int
}

func valueCases() []Case {
	for _, value := range []any{Player{}, []Player{}, map[string]int{}, time.Time{}, time.Second} {
		gob.Register(value)
	}
	return []Case{
		{"values keep their Go types", valuesKeepTheirTypes},
		{"typed getters give what was put", typedGetters},
		{"getters give zero for what is absent or of another type", gettersOfTheWrongType},
		{"a value that is replaced or removed stays so", replaceAndRemove},
		{"keys are sorted, and none are an empty slice", sortedKeys},
		{"clear takes the values and leaves the session", clearLeavesTheSession},
		{"many and long values come back", manyAndLong},
		{"odd keys and empty values come back", oddKeys},
	}
}

func valuesKeepTheirTypes(t testing.TB, open Harness) {
	m := open(t)
	values := map[string]any{
		"string": "Ada", "bool": true, "int": -7, "int32": int32(7), "int64": int64(1) << 62,
		"uint8": uint8(255), "uint64": ^uint64(0), "float64": 1.5, "float32": float32(0.25),
		"bytes": []byte{0, 255, 10}, "strings": []string{"a", ""}, "ints": []int{1, 2},
		"map": map[string]int{"gold": 3}, "struct": Player{"Ada", 3}, "structs": []Player{{"Ada", 3}},
		"duration": 3 * time.Second,
	}
	ctx := load(t, m, "")
	for key, value := range values {
		m.Put(ctx, key, value)
	}
	ctx = load(t, m, commit(ctx, t, m))
	for key, want := range values {
		if got := m.Get(ctx, key); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %T %v, want %T %v", key, got, got, want, want)
		}
	}
}

func typedGetters(t testing.TB, open Harness) {
	m := open(t)
	zone := time.FixedZone("", 2*60*60)
	moment := time.Date(2031, 2, 3, 4, 5, 6, 7, zone)
	ctx := load(t, m, "")
	m.Put(ctx, "s", "Ada")
	m.Put(ctx, "b", true)
	m.Put(ctx, "i", 7)
	m.Put(ctx, "i32", int32(8))
	m.Put(ctx, "i64", int64(9))
	m.Put(ctx, "f", 1.5)
	m.Put(ctx, "bytes", []byte("gold"))
	m.Put(ctx, "t", moment)
	ctx = load(t, m, commit(ctx, t, m))
	if m.GetString(ctx, "s") != "Ada" || !m.GetBool(ctx, "b") || m.GetInt(ctx, "i") != 7 ||
		m.GetInt32(ctx, "i32") != 8 || m.GetInt64(ctx, "i64") != 9 || m.GetFloat(ctx, "f") != 1.5 ||
		string(m.GetBytes(ctx, "bytes")) != "gold" {
		t.Errorf("keys %v read as other values", m.Keys(ctx))
	}
	got := m.GetTime(ctx, "t")
	if _, offset := got.Zone(); !got.Equal(moment) || offset != 2*60*60 {
		t.Errorf("time is %v, want %v", got, moment)
	}
}

func gettersOfTheWrongType(t testing.TB, open Harness) {
	m := open(t)
	ctx := load(t, m, stored(t, m, "s", "7"))
	for _, key := range []string{"absent", "s"} {
		if m.GetInt(ctx, key) != 0 || m.GetInt32(ctx, key) != 0 || m.GetInt64(ctx, key) != 0 || m.GetBool(ctx, key) ||
			m.GetFloat(ctx, key) != 0 || m.GetBytes(ctx, key) != nil || !m.GetTime(ctx, key).IsZero() {
			t.Errorf("%q reads as something", key)
		}
	}
	if m.GetString(ctx, "absent") != "" || m.Get(ctx, "absent") != nil || m.Exists(ctx, "absent") {
		t.Error("an absent key exists")
	}
	if m.GetString(ctx, "s") != "7" || !m.Exists(ctx, "s") {
		t.Error("a look with the wrong type changed the value")
	}
}

func replaceAndRemove(t testing.TB, open Harness) {
	m := open(t)
	token := stored(t, m, "a", "1", "b", "1", "c", "1")
	ctx := load(t, m, token)
	m.Put(ctx, "a", 2) // of another type
	m.Remove(ctx, "b")
	m.Remove(ctx, "absent")
	commit(ctx, t, m)
	ctx = load(t, m, token)
	if m.GetInt(ctx, "a") != 2 || m.Exists(ctx, "b") || m.GetString(ctx, "c") != "1" {
		t.Errorf("a is %v, b is %v, c is %v", m.Get(ctx, "a"), m.Get(ctx, "b"), m.Get(ctx, "c"))
	}
}

func sortedKeys(t testing.TB, open Harness) {
	m := open(t)
	ctx := load(t, m, "")
	if keys := m.Keys(ctx); keys == nil || len(keys) != 0 {
		t.Errorf("keys of a new session: %#v", keys)
	}
	ctx = load(t, m, stored(t, m, "b", "1", "c", "1", "a", "1"))
	if keys := m.Keys(ctx); !slices.Equal(keys, []string{"a", "b", "c"}) {
		t.Errorf("keys: %v", keys)
	}
}

func clearLeavesTheSession(t testing.TB, open Harness) {
	m := open(t)
	token := stored(t, m, "a", "1", "b", "2")
	ctx := load(t, m, token)
	deadline := m.Deadline(ctx)
	if err := m.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	if after := commit(ctx, t, m); after != token {
		t.Errorf("clear changed the token")
	}
	ctx = load(t, m, token)
	if len(m.Keys(ctx)) != 0 || m.Token(ctx) != token || !m.Deadline(ctx).Equal(deadline) {
		t.Errorf("after clear: keys %v, token kept %v, deadline %v, want %v",
			m.Keys(ctx), m.Token(ctx) == token, m.Deadline(ctx), deadline)
	}
	m.Put(ctx, "c", "3")
	commit(ctx, t, m)
	if got := m.Keys(load(t, m, token)); !slices.Equal(got, []string{"c"}) {
		t.Errorf("keys after a new value: %v", got)
	}
}

func manyAndLong(t testing.TB, open Harness) {
	m := open(t)
	ctx := load(t, m, "")
	long := strings.Repeat("gold ", 50_000)
	for i := range 300 {
		m.Put(ctx, fmt.Sprintf("key %d", i), i)
	}
	m.Put(ctx, "long", long)
	ctx = load(t, m, commit(ctx, t, m))
	if keys := m.Keys(ctx); len(keys) != 301 || m.GetInt(ctx, "key 299") != 299 || m.GetString(ctx, "long") != long {
		t.Errorf("%d keys came back, the long value with %d bytes", len(keys), len(m.GetString(ctx, "long")))
	}
}

func oddKeys(t testing.TB, open Harness) {
	m := open(t)
	pairs := []string{
		"", "empty key", "empty value", "", "with space", "1", "d:prefix", "2", "version", "3",
		"expires", "4", "epoch", "5", "nonce", "6", "ключ", "\x00\xff", "line\nbreak", "\r\n",
	}
	ctx := load(t, m, stored(t, m, pairs...))
	for i := 0; i < len(pairs); i += 2 {
		if got := m.GetString(ctx, pairs[i]); got != pairs[i+1] || !m.Exists(ctx, pairs[i]) {
			t.Errorf("key %q is %q, want %q", pairs[i], got, pairs[i+1])
		}
	}
}
