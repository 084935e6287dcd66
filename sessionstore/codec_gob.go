package sessionstore

import (
	"encoding/gob"
	"fmt"
	"reflect"
	"strings"
)

// encodeGob encodes what the format has no type for. As under scs, the type
// must be registered with gob, and the stream carries its name.
func encodeGob(v any) (string, error) {
	var b strings.Builder
	if err := gob.NewEncoder(&b).Encode(&v); err != nil {
		return "", fmt.Errorf("a %T needs gob and gob.Register: %w", v, err)
	}
	return b.String(), nil
}

// decodeGob decodes one value. Code of the value's own type may run, and what
// that makes of damaged data must not end the program.
func decodeGob(stream string) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, fmt.Errorf("sessionstore: decoding a gob panics: %v", p)
		}
	}()
	from := strings.NewReader(stream)
	if err := gob.NewDecoder(from).Decode(&v); err != nil {
		return nil, err
	}
	if from.Len() > 0 {
		return nil, errMalformed
	}
	return v, nil
}

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

func sameGob(a, b string) bool {
	va, errA := decodeGob(a)
	vb, errB := decodeGob(b)
	return errA == nil && errB == nil && reflect.DeepEqual(va, vb)
}
