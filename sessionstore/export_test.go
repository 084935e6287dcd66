package sessionstore

import (
	"maps"
	"slices"
)

// Codec is the codec of every manager.
var Codec = codec{values: textCodec{}}

// The codec of one value.
var (
	EncodeValue = textCodec{}.encode
	DecodeValue = textCodec{}.decode
)

// Diff names what a request set and deleted that turned base into mine.
func Diff(base, mine map[string]string) (set, del []string) {
	d := diff(base, fieldsOf(mine))
	for _, f := range d.set {
		set = append(set, f.name)
	}
	return set, d.del
}

// Merge is what a session holds when one request turned base into mine and
// others turned it into theirs.
func Merge(base, mine, theirs map[string]string) map[string]string {
	return merge(theirs, diff(base, fieldsOf(mine)))
}

func fieldsOf(values map[string]string) []field {
	var fields []field
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fields = append(fields, field{name, values[name]})
	}
	return fields
}
