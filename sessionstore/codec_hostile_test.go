package sessionstore_test

import (
	"encoding/gob"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/shardhop/shardhop/sessionstore"
)

func TestValuesThatAreRefused(t *testing.T) {
	loop := []any{nil, nil}
	loop[0], loop[1] = loop, loop
	wide := []any{strings.Repeat("x", 1000)}
	for range 25 {
		wide = []any{wide, wide}
	}
	for _, test := range []struct {
		reason string
		value  any
		word   string
	}{
		{"holds itself", loop, "deeper"},
		{"doubles with every level", wide, "largest"},
		{"a long string", strings.Repeat("x", 1<<20), "largest"},
		{"long bytes", make([]byte, 1<<20), "largest"},
		{"a long gob", hero{Name: strings.Repeat("x", 1<<20)}, "largest"},
		{"a type that gob does not know", []any{struct{ A int }{1}}, "gob.Register"},
		{"a nil pointer", (*hero)(nil), "gob"},
		{"a type that nests too deep for the format", [][][][][]int{}, "gob.Register"},
		{"a map with keys that NaN may be", map[float64]int{}, "gob.Register"},
	} {
		_, err := sessionstore.EncodeValue(test.value)
		if err == nil || !strings.Contains(err.Error(), test.word) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

// TestHostileValues decodes what wants to be large. Errors are not asked for:
// some of it is well-formed.
func TestHostileValues(t *testing.T) {
	many := func(n int, prefix, elem string) string { return prefix + strings.Repeat(elem, n) }
	for _, test := range []struct {
		reason, text string
	}{
		{"a length of 2^63", "\x93\x92\xff\xff\xff\xff\xff\xff\xff\xff\x7f"},
		{"a map of 2^63", "\x94\x8c\x92\xff\xff\xff\xff\xff\xff\xff\xff\x7f"},
		{"bytes of 2^40", "\x8f\x80\x80\x80\x80\x80\x40"},
		{"a number without end", many(1000, "\x82", "\xff")},
		{"slices in slices", many(300_000, "", "\x93\x92\x02")},
		{"maps in maps", many(200_000, "", "\x94\x8c\x92\x02\x01a")},
		{"a type without end", many(1<<19, "", "\x93")},
		{"50000 empty slices", many(50_000, "\x93\x93\x8c\xd1\x86\x03", "\x01")},
		{"50000 empty maps", many(50_000, "\x93\x94\x8c\x92\xd1\x86\x03", "\x01")},
		{"50000 maps of one", many(50_000, "\x93\x94\x8c\x92\xd1\x86\x03", "\x02\x00\x80")},
		{"50000 maps of one slice", many(50_000, "\x93\x94\x8c\x93\x82\xd1\x86\x03", "\x02\x00\x00")},
		{"50000 loose maps of one", many(50_000, "\x93\x92\xd1\x86\x03", "\x94\x8c\x92\x02\x00\x80")},
		{"50000 loose empty maps", many(50_000, "\x93\x92\xd1\x86\x03", "\x94\x8c\x92\x01")},
		{"50000 nils", many(50_000, "\x93\x92\xd1\x86\x03", "\x80")},
		{"a map of nothing", many(50_000, "\x94\x8c\x94\x8c\x8c\xd1\x86\x03", "\x00")},
		{"a gob that is none", many(50_000, "\x96\x01\x95\xd0\x86\x03", "\xf8")},
	} {
		decode := sessionstore.NewDecoder()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = decode(test.text)
		runtime.ReadMemStats(&after)
		allocated := after.TotalAlloc - before.TotalAlloc
		if limit := uint64(160*len(test.text) + 1<<16); allocated > limit {
			t.Errorf("%s: %d bytes allocated for %d", test.reason, allocated, len(test.text))
		}
	}
}

// TestTypesThatAValueNamesAreLimited names more types than a codec makes.
func TestTypesThatAValueNamesAreLimited(t *testing.T) {
	decode := sessionstore.NewDecoder()
	made := 0
	for key := 0x81; key <= 0x8c; key++ {
		for inner := 0x81; inner <= 0x8c; inner++ {
			for leaf := 0x81; leaf <= 0x92; leaf++ {
				tags := []byte{0x94, byte(key), 0x94, byte(inner), byte(leaf), 0}
				if _, err := decode(string(tags)); err == nil {
					made++
				}
			}
		}
	}
	if made == 0 || made > sessionstore.MaxTypes {
		t.Errorf("%d types were made", made)
	}
	// What needs no new type goes on to work.
	if v, err := decode("\x8cAda"); v != "Ada" || err != nil {
		t.Errorf("a string reads as %v, %v", v, err)
	}
}

// TestEveryProperPrefixIsMalformed also looks at each value with a byte more.
// Strings, which end where the text ends, cannot tell.
func TestEveryProperPrefixIsMalformed(t *testing.T) {
	for _, v := range samples() {
		if _, ok := v.(string); ok {
			continue
		}
		text := encode(t, v)
		for i := range len(text) {
			if got, err := sessionstore.DecodeValue(text[:i]); err == nil {
				t.Errorf("%d of %d bytes of %T %v decode to %v", i, len(text), v, v, got)
			}
		}
		if got, err := sessionstore.DecodeValue(text + "\x00"); err == nil {
			t.Errorf("%T %v with a byte more decodes to %v", v, v, got)
		}
	}
}

// TestGobDamagedAnywhereIsNoticed flips each byte of a gob value.
func TestGobDamagedAnywhereIsNoticed(t *testing.T) {
	text := encode(t, hero{"Ada", map[string]int{"a": 1}})
	for i := range len(text) {
		damaged := []byte(text)
		damaged[i] ^= 0x10
		if v, err := sessionstore.DecodeValue(string(damaged)); err == nil && reflect.TypeOf(v) != reflect.TypeFor[string]() {
			t.Errorf("byte %d damaged: %T %v", i, v, v)
		}
	}
}

// touchy is a type that cannot take what it wrote itself.
type touchy struct{}

func (touchy) GobEncode() ([]byte, error) { return []byte("boo"), nil }
func (*touchy) GobDecode([]byte) error    { panic("boo") }

func TestTypeThatPanics(t *testing.T) {
	gob.Register(touchy{})
	if v, err := sessionstore.DecodeValue(encode(t, touchy{})); err == nil {
		t.Errorf("decodes to %v", v)
	}
}

// TestLargestValue holds what is stored and what is read to one limit.
func TestLargestValue(t *testing.T) {
	for _, v := range []func(n int) any{
		func(n int) any { return strings.Repeat("x", n) },
		func(n int) any { return []string{strings.Repeat("x", n)} },
		func(n int) any { return hero{Name: strings.Repeat("x", n)} },
	} {
		text, n := "", 1<<20
		for ; text == ""; n -= 8 {
			text, _ = sessionstore.EncodeValue(v(n))
		}
		if _, err := sessionstore.DecodeValue(text); err != nil || n < 1<<20-300 {
			t.Errorf("the largest %T has %d bytes and reads with %v", v(n), len(text), err)
		}
	}
}

func TestConcurrentDecoding(t *testing.T) {
	decode := sessionstore.NewDecoder()
	var texts []string
	for _, v := range samples() {
		texts = append(texts, encode(t, v))
	}
	done := make(chan error)
	for range 4 {
		go func() {
			for range 20 {
				for _, text := range texts {
					if _, err := decode(text); err != nil {
						done <- err
						return
					}
				}
			}
			done <- nil
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
