package sessionstore_test

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/sessionstore"
)

type hero struct {
	Name  string
	Items map[string]int
}

func init() {
	gob.Register(hero{})
	gob.Register(map[string]int{})
	gob.Register(time.Time{}) // for the stock codec in the benchmark
}

func TestValuesKeepTheirExactType(t *testing.T) {
	berlin := time.FixedZone("", 2*60*60)
	values := map[string]any{
		"string": "Ada \x00\xff✓", "empty": "", "true": true, "false": false,
		"int": -42, "int8": int8(math.MinInt8), "int16": int16(math.MaxInt16), "int32": int32(math.MinInt32), "int64": int64(math.MinInt64),
		"uint": uint(42), "uint8": uint8(255), "uint16": uint16(math.MaxUint16), "uint32": uint32(math.MaxUint32), "uint64": uint64(math.MaxUint64),
		"float32": float32(0.1), "float64": 0.1, "tiny": math.SmallestNonzeroFloat64, "inf": math.Inf(-1),
		"bytes": []byte{0, 255, 's'}, "nil": nil,
		"time": time.Date(2024, 2, 29, 23, 59, 59, 123456789, time.UTC), "zone": time.Date(2024, 7, 1, 12, 0, 0, 0, berlin),
		"far": time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC), "never": time.Time{}, "odd": time.Date(1890, 1, 1, 0, 0, 0, 0, time.FixedZone("LMT", 3208)),
		"slice": []string{"a", "b"}, "struct": hero{"Ada", map[string]int{"sword": 1, "potion": 3}}, "map": map[string]int{"x": 1},
	}
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		m := sessionstore.New(rdb, patient)
		ctx := load(t, m, "")
		for key, value := range values {
			m.Put(ctx, key, value)
		}
		token, _, err := m.Commit(ctx)
		if err != nil {
			t.Fatal(err)
		}
		ctx = load(t, m, token)
		for key, want := range values {
			if got := m.Get(ctx, key); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %T %v, want %T %v", key, got, got, want, want)
			}
		}
		if got := m.Keys(ctx); len(got) != len(values) {
			t.Errorf("%d keys, want %d", len(got), len(values))
		}
	})
}

func TestTypeThatGobDoesNotKnow(t *testing.T) {
	m := sessionstore.New(miniClient(t), patient)
	ctx := load(t, m, "")
	m.Put(ctx, "channel", make(chan int))
	_, _, err := m.Commit(ctx)
	if !errors.Is(err, sessionstore.ErrValue) {
		t.Fatalf("stored a channel: %v", err)
	}
	for _, word := range []string{`"channel"`, "chan int", "gob.Register"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not name %s", err, word)
		}
	}
}

// A value that cannot be stored is a fault of the program: no client shall come
// again, and nobody shall look for it in Redis.
func TestUnstorableValueIsNoOutage(t *testing.T) {
	var s *site
	s = newSite(t, miniClient(t), map[string]http.HandlerFunc{"/channel": func(w http.ResponseWriter, r *http.Request) {
		s.sessions.Put(r.Context(), "channel", make(chan int))
		_, _ = io.WriteString(w, "hello")
	}})
	b := s.browser()
	b.visit("/put?a=1")
	p := b.visit("/channel")
	if p.status != http.StatusInternalServerError || p.header.Get("Retry-After") != "" || p.setsCookie() {
		t.Errorf("%d, %v", p.status, p.header)
	}
	if strings.Contains(p.body, "channel") || strings.Contains(p.body, "hello") {
		t.Errorf("the client reads %q", p.body)
	}
	if got := b.visit("/get?k=a").body; got != "1" {
		t.Errorf("a is %q afterwards", got)
	}
}

// A session grows by no more than can be read within the timeout: or its player
// was locked out, and Redis was held for silent.
func TestSessionThatGrowsTooLarge(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		m, token := stored(t, rdb)
		page := strings.Repeat("x", 1_000_000)
		for i := range 6 {
			ctx := load(t, m, token)
			m.Put(ctx, fmt.Sprint("page", i), page)
			switch _, _, err := m.Commit(ctx); {
			case i < 4 && err != nil:
				t.Fatalf("page %d: %v", i, err)
			case i >= 4 && !errors.Is(err, sessionstore.ErrValue):
				t.Errorf("page %d: %v", i, err)
			}
		}
		ctx := load(t, m, token)
		if m.GetString(ctx, "uid") != "7" || !m.Exists(ctx, "page3") || m.Exists(ctx, "page4") {
			t.Errorf("the session holds %v", m.Keys(ctx))
		}
		m.Remove(ctx, "page0")
		m.Put(ctx, "page4", page)
		if _, _, err := m.Commit(ctx); err != nil {
			t.Errorf("one page for another: %v", err)
		}
		fresh := load(t, m, "")
		for i := range 5 {
			m.Put(fresh, fmt.Sprint("page", i), page)
		}
		if _, _, err := m.Commit(fresh); !errors.Is(err, sessionstore.ErrValue) {
			t.Errorf("a new session: %v", err)
		}
	})
}

func TestGobValueInAnotherOrderIsNoChange(t *testing.T) {
	rdb := miniClient(t)
	count := new(counter)
	rdb.AddHook(count)
	m := sessionstore.New(rdb, patient)
	items := map[string]int{}
	for i := range 20 {
		items[string(rune('a'+i))] = i
	}
	ctx := load(t, m, "")
	m.Put(ctx, "hero", hero{"Ada", items})
	token, _, err := m.Commit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		ctx := load(t, m, token)
		m.Put(ctx, "hero", hero{"Ada", items})
		count.reset()
		if _, _, err := m.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		if trips, names := count.reset(); trips != 0 {
			t.Fatalf("an equal hero was written: %s", names)
		}
	}
	// Changed in place, it is a change.
	ctx = load(t, m, token)
	m.Get(ctx, "hero").(hero).Items["a"] = 100
	m.Put(ctx, "other", 1)
	if _, _, err := m.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if got := m.Get(load(t, m, token), "hero").(hero).Items["a"]; got != 100 {
		t.Errorf("a is %d", got)
	}
}

func TestValueThatCannotBeDecoded(t *testing.T) {
	for _, raw := range []string{
		"", "garbage",
		"\x82", "\x82\x80", "\x83\xff\x7f", "\x81\x02", // an int without a number, without its end; an int8 of 8191; a bool of 2
		"\x93", "\x93\x8c\x05\x01a", // slices that end early
		"\x95", "\x96\x01\x95", "\x96\x01\x95\x03gob", // gobs that are none
		"\xf7from the future",
	} {
		rdb := miniClient(t)
		m, token := stored(t, rdb)
		key := "session:" + m.Key(load(t, m, token))
		set(t, rdb, key, "d:odd", raw)

		ctx := load(t, m, token)
		if got := m.GetString(ctx, "odd"); got != "" {
			t.Errorf("%q reads as %q", raw, got)
		}
		if got := m.GetString(ctx, "uid"); got != "7" {
			t.Errorf("%q spoils its neighbour: %q", raw, got)
		}
		m.Put(ctx, "new", "1")
		if _, _, err := m.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		if got := fields(t, rdb, key)["d:odd"]; got != raw {
			t.Errorf("%q became %q", raw, got)
		}
	}
}
