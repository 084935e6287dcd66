package sessionstore

import (
	"maps"
	"slices"
)

// Codec is the codec of every manager.
var Codec = newCodec()

// EncodeValue encodes one value.
func EncodeValue(v any) (string, error) {
	text, err := appendValue(nil, v)
	return string(text), err
}

// DecodeValue decodes one value.
func DecodeValue(text string) (any, error) { return Codec.decodeValue(text) }

// SameValue reports whether two encodings stand for one value.
func SameValue(a, b string) bool { return sameValue(a, b) }

// TagGobs begins a value that has gob streams in it.
const TagGobs = tagGobs

// MaxTypes is how many types a codec makes.
const MaxTypes = maxTypes

// NewDecoder returns the decoding of values by a codec with no types yet.
func NewDecoder() func(text string) (any, error) { return newCodec().decodeValue }

// Diff names what a request set and deleted that turned base into mine.
func Diff(base, mine map[string]string) (set, del []string) {
	d := diff(fieldsOf(base), fieldsOf(mine))
	for _, f := range d.set {
		set = append(set, f.name)
	}
	return set, d.del
}

// Merge is what a session holds when one request turned base into mine and
// others turned it into theirs.
func Merge(base, mine, theirs map[string]string) map[string]string {
	return merge(fieldsOf(theirs), diff(fieldsOf(base), fieldsOf(mine)))
}

func fieldsOf(values map[string]string) []field {
	var fields []field
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fields = append(fields, field{name, values[name]})
	}
	return fields
}

// Owed is how many routes m keeps to store later.
func (m *Manager) Owed() int { return int(m.store.debts.owed.Load()) }
