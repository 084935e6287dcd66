package sessionstore_test

import (
	"encoding/gob"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shardhop/shardhop/sessionstore"
)

// samples are values of every type that the codec writes by itself, and some
// that it leaves to gob.
func samples() []any {
	return []any{
		nil, true, false, "", "Ada \x00\xff✓", []byte(nil), []byte{}, []byte{0, 255},
		0, -1, math.MaxInt, math.MinInt, int8(math.MinInt8), int16(math.MaxInt16), int32('A'), int64(math.MinInt64),
		uint(math.MaxUint), uint8(255), uint16(1), uint32(math.MaxUint32), uint64(math.MaxUint64),
		float32(0.1), float32(math.Inf(1)), 0.1, math.Copysign(0, -1), math.NaN(), math.Inf(-1), math.SmallestNonzeroFloat64,
		time.Time{}, time.Date(2024, 2, 29, 23, 59, 59, 123456789, time.UTC), time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(1890, 1, 1, 0, 0, 0, 0, time.FixedZone("LMT", 3208)), time.Now().Round(0), time.Hour,
		[]string(nil), []string{}, []string{"a", "", "b"}, []int{1, -2}, []int64{math.MaxInt64}, []float32{1.5}, []bool{true, false},
		[][]byte{nil, {}, {1}}, []time.Time{{}, time.Unix(1, 0).UTC()}, []time.Duration{1}, [][]string{nil, {}, {"a"}}, []uint16{1, 2},
		[]any(nil), []any{nil, 1, "a", []any{int8(1), []string{"x"}}, map[string]any{"k": nil}},
		map[string]string(nil), map[string]string{}, map[string]string{"a": "1", "": "2"}, map[string]int{"a": 1, "b": -1},
		map[int]string{-1: "a", 300: "b"}, map[bool]int{true: 1, false: 0}, map[uint8][]int{1: {1}, 2: nil},
		map[string]any{"a": 1, "b": []any{1.5}, "c": map[string]any{}}, map[string]map[string][]string{"a": {"b": {"c"}}, "n": nil},
		map[time.Duration]bool{time.Second: true},
		hero{"Ada", map[string]int{"a": 1, "b": 2}}, []any{hero{Name: "Ada"}, 1, hero{Name: "Bob"}}, map[string]any{"h": hero{}},
		rank("knight"), complex(1, 2),
	}
}

// rank is a named type, which only gob can tell from a string.
type rank string

func init() { gob.Register(rank("")) }

func TestValueRoundTrip(t *testing.T) {
	for _, v := range samples() {
		wantRoundTrip(t, v)
	}
}

// wantRoundTrip checks that v comes back with its type and that its encoding
// has no other.
func wantRoundTrip(t rapid.TB, v any) {
	t.Helper()
	text, err := sessionstore.EncodeValue(v)
	if err != nil {
		t.Fatalf("encode %T %v: %v", v, v, err)
	}
	if text[0] < 0x80 || text[0] > 0xf7 {
		t.Errorf("%T begins with %#x, as a gob stream may", v, text[0])
	}
	got, err := sessionstore.NewDecoder()(text) // its own: a codec makes only so many types
	if err != nil {
		t.Fatalf("decode %T %v from %q: %v", v, v, text, err)
	}
	if !identical(reflect.ValueOf(v), reflect.ValueOf(got)) {
		t.Errorf("%T %#v came back as %T %#v", v, v, got, got)
	}
	again, err := sessionstore.EncodeValue(got)
	if err != nil || !sessionstore.SameValue(text, again) {
		t.Errorf("%T %v is %q, then %q, %v", v, v, text, again, err)
	}
}

// identical is reflect.DeepEqual with floats compared by their bits, and times
// by all that they show.
func identical(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	if a.Type() != b.Type() {
		return false
	}
	if x, ok := a.Interface().(time.Time); ok {
		y := b.Interface().(time.Time)
		return x.Equal(y) && x.String() == y.String() && (x.Location() == time.UTC) == (y.Location() == time.UTC)
	}
	switch a.Kind() {
	case reflect.Float32, reflect.Float64:
		return math.Float64bits(a.Float()) == math.Float64bits(b.Float())
	case reflect.Interface:
		return identical(a.Elem(), b.Elem())
	case reflect.Slice:
		if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !identical(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
			return false
		}
		for _, key := range a.MapKeys() {
			if !identical(a.MapIndex(key), b.MapIndex(key)) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// TestAnyValueRoundTrip draws values of types that it draws as well.
func TestAnyValueRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawValue(t, drawType(t, 3), 3)
		wantRoundTrip(t, v.Interface())
	})
}

var leaves = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](),
	reflect.TypeFor[int64](), reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](),
	reflect.TypeFor[uint64](), reflect.TypeFor[string](), reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[[]byte](),
	reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](), reflect.TypeFor[any](),
}

func drawType(t *rapid.T, depth int) reflect.Type {
	switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
	case depth > 0 && kind == 0:
		return reflect.SliceOf(drawType(t, depth-1))
	case depth > 0 && kind == 1:
		key := rapid.SampledFrom(leaves[:12]).Draw(t, "key")
		return reflect.MapOf(key, drawType(t, depth-1))
	}
	return rapid.SampledFrom(leaves).Draw(t, "leaf")
}

func drawValue(t *rapid.T, typ reflect.Type, depth int) reflect.Value {
	v := reflect.New(typ).Elem()
	switch {
	case typ == reflect.TypeFor[time.Time]():
		zone := rapid.SampledFrom([]*time.Location{time.UTC, time.Local, time.FixedZone("CEST", 7200), time.FixedZone("", -1)}).Draw(t, "zone")
		at := time.Unix(rapid.Int64().Draw(t, "sec"), rapid.Int64Range(0, 999_999_999).Draw(t, "nsec")).In(zone)
		v.Set(reflect.ValueOf(at))
	case typ == reflect.TypeFor[hero]():
		v.Set(reflect.ValueOf(hero{rapid.String().Draw(t, "name"), map[string]int{"a": 1, "b": 2, "c": 3}}))
	case v.Kind() == reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case v.CanInt():
		n := rapid.Int64().Draw(t, "int")
		v.SetInt(n >> (64 - typ.Bits()))
	case v.CanUint():
		v.SetUint(rapid.Uint64().Draw(t, "uint") >> (64 - typ.Bits()))
	case v.CanFloat():
		v.SetFloat(rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), 0.1}).Draw(t, "float"))
	case v.Kind() == reflect.String:
		v.SetString(rapid.String().Draw(t, "string"))
	case v.Kind() == reflect.Interface:
		switch rapid.IntRange(0, 3).Draw(t, "any") {
		case 0:
			v.Set(drawValue(t, reflect.TypeFor[hero](), 0))
		case 1, 2:
			if depth > 0 {
				v.Set(drawValue(t, drawType(t, depth-1), depth-1))
			}
		}
	case rapid.IntRange(0, 5).Draw(t, "nil") == 0:
	case v.Kind() == reflect.Slice:
		n := rapid.IntRange(0, 3).Draw(t, "len")
		v.Set(reflect.MakeSlice(typ, n, n))
		for i := range n {
			v.Index(i).Set(drawValue(t, typ.Elem(), depth-1))
		}
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(typ))
		for range rapid.IntRange(0, 3).Draw(t, "len") {
			v.SetMapIndex(drawValue(t, typ.Key(), 0), drawValue(t, typ.Elem(), depth-1))
		}
	}
	return v
}

// FuzzValue decodes anything: an error, or a value that has just this encoding.
func FuzzValue(f *testing.F) {
	for _, v := range samples() {
		text, err := sessionstore.EncodeValue(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := sessionstore.NewDecoder()(text)
		if err != nil {
			return
		}
		again, err := sessionstore.EncodeValue(v)
		if err != nil {
			t.Fatalf("%q decodes to %T, which does not encode: %v", text, v, err)
		}
		if again != text && text[0] != sessionstore.TagGobs {
			t.Errorf("%q decodes to %T %v, which encodes to %q", text, v, v, again)
		}
	})
}

// FuzzUnpack decodes any packed session.
func FuzzUnpack(f *testing.F) {
	packed, err := sessionstore.Codec.Encode(time.UnixMilli(1), map[string]any{"a": "b", "n": 1, "db_server": "c", "h": hero{}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	f.Add([]byte{0, 255, 255, 255, 255, 15})
	f.Fuzz(func(t *testing.T, packed []byte) {
		deadline, values, err := sessionstore.Codec.Decode(packed)
		if err != nil {
			return
		}
		again, err := sessionstore.Codec.Encode(deadline, values)
		if err != nil {
			t.Fatalf("decoded, it does not encode: %v", err)
		}
		if _, _, err := sessionstore.Codec.Decode(again); err != nil {
			t.Errorf("encoded, it does not decode: %v", err)
		}
	})
}
