package sessionstore

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"hash/crc32"
	"reflect"
)

// encodeGob encodes what the format has no type for. As under scs, the type
// must be registered with gob, and the stream carries its name.
//
// A checksum stands in front: gob makes a map as large as its count says before
// it reads the map, so that one damaged byte could take all memory. That does
// not stop who writes to Redis on purpose; gob is not made for that, and such
// a person can give himself any session anyway.
func encodeGob(v any) (string, error) {
	var b bytes.Buffer
	b.Write(make([]byte, crc32.Size))
	if err := gob.NewEncoder(&b).Encode(&v); err != nil {
		return "", fmt.Errorf("a %T needs gob and gob.Register: %w", v, err)
	}
	sum := crc32.Checksum(b.Bytes()[crc32.Size:], castagnoli)
	binary.LittleEndian.PutUint32(b.Bytes(), sum)
	return b.String(), nil
}

// decodeGob decodes what encodeGob encoded. Code of the value's own type may
// run, and if that panics, it must not end the program.
func decodeGob(stream string) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, fmt.Errorf("sessionstore: decoding a gob panics: %v", p)
		}
	}()
	data := []byte(stream)
	if len(data) < crc32.Size || binary.LittleEndian.Uint32(data) != crc32.Checksum(data[crc32.Size:], castagnoli) {
		return nil, errMalformed
	}
	if err := gob.NewDecoder(bytes.NewReader(data[crc32.Size:])).Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// joinGobs appends a value with gob streams, for each of which body has a
// tagGob. The streams stand behind body, which is the same for equal values.
func joinGobs(buf []byte, body string, gobs []byte) []byte {
	return append(appendText(append(buf, tagGobs), body), gobs...)
}

// splitGobs undoes joinGobs. False: text is no value with gob streams.
func splitGobs(text string) (body, gobs string, ok bool) {
	if text == "" || text[0] != tagGobs {
		return "", "", false
	}
	body, gobs, ok = cutText(text[1:])
	return body, gobs, ok && gobs != ""
}

// sameValue reports whether two encodings stand for one value. Gob writes maps
// in random order and numbers types as each process meets them, so its streams
// are compared decoded. All else has one encoding.
func sameValue(a, b string) bool {
	if a == b {
		return true
	}
	bodyA, gobsA, okA := splitGobs(a)
	bodyB, gobsB, okB := splitGobs(b)
	return okA && okB && bodyA == bodyB && sameGobs(gobsA, gobsB)
}

func sameGobs(a, b string) bool {
	for a != "" && b != "" {
		streamA, restA, okA := cutText(a)
		streamB, restB, okB := cutText(b)
		if !okA || !okB || streamA != streamB && !sameGob(streamA, streamB) {
			return false
		}
		a, b = restA, restB
	}
	return a == b
}

// sameGob compares two gob streams by what they hold. A NaN in them is unequal
// to itself, so such a value counts as changed whenever gob writes it anew.
func sameGob(a, b string) bool {
	va, errA := decodeGob(a)
	vb, errB := decodeGob(b)
	return errA == nil && errB == nil && reflect.DeepEqual(va, vb)
}
