package sessionstore_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/shardhop/shardhop/sessionstore"
)

func encode(t *testing.T, v any) string {
	t.Helper()
	text, err := sessionstore.EncodeValue(v)
	if err != nil {
		t.Fatalf("encode %T: %v", v, err)
	}
	return text
}

// TestFormatStays holds the bytes of the format, which sessions in Redis are
// written in: a change here needs a way to read what is there.
func TestFormatStays(t *testing.T) {
	for _, test := range []struct {
		value any
		want  string
	}{
		{nil, "\x80"},
		{true, "\x81\x01"},
		{-1, "\x82\x01"}, {int8(1), "\x83\x02"}, {int16(1), "\x84\x02"}, {int32(1), "\x85\x02"}, {int64(150), "\x86\xac\x02"},
		{uint(1), "\x87\x01"}, {uint8(1), "\x88\x01"}, {uint16(1), "\x89\x01"}, {uint32(1), "\x8a\x01"}, {uint64(150), "\x8b\x96\x01"},
		{"Ada", "\x8cAda"},
		{float32(1), "\x8d\x00\x00\x80\x3f"}, {1.0, "\x8e\x00\x00\x00\x00\x00\x00\xf0\x3f"},
		{[]byte("Ada"), "\x8f\x04Ada"}, {[]byte(nil), "\x8f\x00"},
		{time.Unix(1, 2).UTC(), "\x90\x02\x04"},
		{time.Unix(1, 0).In(time.FixedZone("CET", 3600)), "\x90\x02\x01\xa0\x38\x03CET"},
		{time.Nanosecond, "\x91\x02"},
		{[]any{"a", 1}, "\x93\x92\x03\x8c\x01a\x82\x02"},
		{map[string][]int{"b": nil, "a": {1}}, "\x94\x8c\x93\x82\x03\x01a\x02\x02\x01b\x00"},
	} {
		if got := encode(t, test.value); got != test.want {
			t.Errorf("%T %v is %q, want %q", test.value, test.value, got, test.want)
		}
	}
	if got := encode(t, []any{rank("a"), 1}); !strings.HasPrefix(got, "\x96\x06\x93\x92\x03\x95\x82\x02") {
		t.Errorf("a gob value is %q", got)
	}
}

func TestMapsHaveOneEncoding(t *testing.T) {
	typed, loose := map[int]string{}, map[string]any{}
	for i := range 50 {
		typed[i-25] = fmt.Sprint(i)
		loose[fmt.Sprint(i)] = map[string]int{"a": i, "b": -i}
	}
	for _, v := range []any{typed, loose} {
		want := encode(t, v)
		for range 20 {
			copied := v
			switch m := v.(type) {
			case map[int]string:
				copied = maps.Collect(maps.All(m))
			case map[string]any:
				copied = maps.Collect(maps.All(m))
			}
			if encode(t, copied) != want {
				t.Fatalf("%T has two encodings", v)
			}
		}
	}
}

func TestSameValue(t *testing.T) {
	items := func(n int) map[string]int {
		m := map[string]int{}
		for i := range 20 {
			m[fmt.Sprint(i)] = i * n
		}
		return m
	}
	for _, test := range []struct {
		reason string
		a, b   any
		want   bool
	}{
		{"equal by themselves", 1, 1, true},
		{"another value", 1, 2, false},
		{"another type", 1, int64(1), false},
		{"nil is not empty", []string(nil), []string{}, false},
		{"gob in another order", hero{"Ada", items(1)}, hero{"Ada", items(1)}, true},
		{"gob of another value", hero{"Ada", items(1)}, hero{"Ada", items(2)}, false},
		{"gob of another type", hero{}, rank(""), false},
		{"gob beside something else", []any{hero{"Ada", items(1)}, 1}, []any{hero{"Ada", items(1)}, 2}, false},
		{"gob inside, in another order", []any{hero{"Ada", items(1)}, 1}, []any{hero{"Ada", items(1)}, 1}, true},
		{"more of the same gob", []any{hero{}}, []any{hero{}, hero{}}, false},
		{"gob and none", hero{}, 1, false},
	} {
		for range 10 {
			if got := sessionstore.SameValue(encode(t, test.a), encode(t, test.b)); got != test.want {
				t.Errorf("%s: %v", test.reason, got)
			}
		}
	}
	if sessionstore.SameValue("\x96\x01\x95\x01a", "\x96\x01\x95\x01b") {
		t.Error("what cannot be decoded is the same as something else")
	}
}

func TestTimes(t *testing.T) {
	now := time.Now()
	if got := decodeTime(t, encode(t, now)); got != now.Round(0) {
		t.Errorf("%v came back as %v", now, got)
	}
	// What an instance in another local zone made of its own time.Now.
	theirs := now.In(time.FixedZone("ELSE", -5*60*60-1)).Round(0)
	text := encode(t, theirs)
	got := decodeTime(t, text)
	if !got.Equal(theirs) || got.String() != theirs.String() {
		t.Errorf("%v came back as %v", theirs, got)
	}
	if again := encode(t, got); again != text {
		t.Errorf("%q is rewritten to %q here", text, again)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	summer := time.Date(2024, 7, 1, 12, 0, 0, 0, berlin)
	got = decodeTime(t, encode(t, summer))
	if name, offset := got.Zone(); !got.Equal(summer) || name != "CEST" || offset != 7200 {
		t.Errorf("%v came back as %v", summer, got)
	}
}

func decodeTime(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := sessionstore.DecodeValue(text)
	if err != nil {
		t.Fatal(err)
	}
	return v.(time.Time)
}
