package sessionstore

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// valueCodec turns one session value into text and back into exactly the Go
// type that it had, since scs's getters assert types.
type valueCodec interface {
	encode(v any) (string, error)
	decode(text string) (any, error)
}

// textCodec writes a letter for the type and the value as readable text, so
// that an operator can read a session with HGETALL. Types that have no letter
// go through gob and must be registered with it, as under scs.
type textCodec struct{}

const (
	kindNil     = 'n'
	kindString  = 's'
	kindBool    = 'b'
	kindInt     = 'i'
	kindInt8    = 'c'
	kindInt16   = 'h'
	kindInt32   = 'l'
	kindInt64   = 'q'
	kindUint    = 'I'
	kindUint8   = 'C'
	kindUint16  = 'H'
	kindUint32  = 'L'
	kindUint64  = 'Q'
	kindFloat32 = 'f'
	kindFloat64 = 'd'
	kindBytes   = 'x'
	kindTime    = 't'
	kindOddTime = 'T'
	kindGob     = 'G'
)

// opaque is a value that this program cannot decode: of a type that it does
// not know, or damaged. It reads as no value of any type and is stored again
// as it was, so that one bad value neither locks a player out nor gets lost.
type opaque string

func (textCodec) encode(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return string(kindNil), nil
	case string:
		return string(kindString) + v, nil
	case bool:
		return string(kindBool) + strconv.FormatBool(v), nil
	case []byte:
		return string(kindBytes) + string(v), nil
	case opaque:
		return string(v), nil
	case time.Time:
		return encodeTime(v)
	case float32:
		return string(kindFloat32) + strconv.FormatFloat(float64(v), 'g', -1, 32), nil
	case float64:
		return string(kindFloat64) + strconv.FormatFloat(v, 'g', -1, 64), nil
	}
	if text, ok := encodeInteger(v); ok {
		return text, nil
	}
	return encodeGob(v)
}

// encodeTime writes RFC 3339 where that can tell it: a year beyond 9999 and an
// offset with seconds take the binary form.
func encodeTime(t time.Time) (string, error) {
	if _, offset := t.Zone(); offset%60 == 0 {
		if text, err := t.MarshalText(); err == nil {
			return string(kindTime) + string(text), nil
		}
	}
	b, err := t.MarshalBinary()
	if err != nil {
		return "", fmt.Errorf("sessionstore: encode a time: %w", err)
	}
	return string(kindOddTime) + string(b), nil
}

func encodeInteger(v any) (string, bool) {
	switch v := v.(type) {
	case int:
		return signed(kindInt, int64(v)), true
	case int8:
		return signed(kindInt8, int64(v)), true
	case int16:
		return signed(kindInt16, int64(v)), true
	case int32:
		return signed(kindInt32, int64(v)), true
	case int64:
		return signed(kindInt64, v), true
	case uint:
		return unsigned(kindUint, uint64(v)), true
	case uint8:
		return unsigned(kindUint8, uint64(v)), true
	case uint16:
		return unsigned(kindUint16, uint64(v)), true
	case uint32:
		return unsigned(kindUint32, uint64(v)), true
	case uint64:
		return unsigned(kindUint64, v), true
	}
	return "", false
}

func signed(kind byte, n int64) string { return string(kind) + strconv.FormatInt(n, 10) }

func unsigned(kind byte, n uint64) string { return string(kind) + strconv.FormatUint(n, 10) }

// encodeGob encodes v as an interface value, which carries the type's name.
func encodeGob(v any) (string, error) {
	var b strings.Builder
	b.WriteByte(kindGob)
	if err := gob.NewEncoder(&b).Encode(&v); err != nil {
		return "", fmt.Errorf("sessionstore: encode a %T: %w", v, err)
	}
	return b.String(), nil
}

func (textCodec) decode(text string) (any, error) {
	if text == "" {
		return nil, errMalformed
	}
	body := text[1:]
	switch text[0] {
	case kindNil:
		return nil, nil
	case kindString:
		return body, nil
	case kindBool:
		return strconv.ParseBool(body)
	case kindBytes:
		return []byte(body), nil
	case kindTime:
		var t time.Time
		err := t.UnmarshalText([]byte(body))
		return t, err
	case kindOddTime:
		var t time.Time
		err := t.UnmarshalBinary([]byte(body))
		return t, err
	case kindFloat32:
		f, err := strconv.ParseFloat(body, 32)
		return float32(f), err
	case kindFloat64:
		return strconv.ParseFloat(body, 64)
	case kindGob:
		var v any
		err := gob.NewDecoder(bytes.NewReader([]byte(body))).Decode(&v)
		return v, err
	}
	return decodeInteger(text[0], body)
}

func decodeInteger(kind byte, body string) (any, error) {
	switch kind {
	case kindInt:
		return strconv.Atoi(body)
	case kindInt8:
		n, err := strconv.ParseInt(body, 10, 8)
		return int8(n), err
	case kindInt16:
		n, err := strconv.ParseInt(body, 10, 16)
		return int16(n), err
	case kindInt32:
		n, err := strconv.ParseInt(body, 10, 32)
		return int32(n), err
	case kindInt64:
		return strconv.ParseInt(body, 10, 64)
	case kindUint:
		n, err := strconv.ParseUint(body, 10, strconv.IntSize)
		return uint(n), err
	case kindUint8:
		n, err := strconv.ParseUint(body, 10, 8)
		return uint8(n), err
	case kindUint16:
		n, err := strconv.ParseUint(body, 10, 16)
		return uint16(n), err
	case kindUint32:
		n, err := strconv.ParseUint(body, 10, 32)
		return uint32(n), err
	case kindUint64:
		return strconv.ParseUint(body, 10, 64)
	}
	return nil, errMalformed
}

// decodeOrKeep decodes text, or keeps it as it is.
func decodeOrKeep(c valueCodec, text string) any {
	v, err := c.decode(text)
	if err != nil {
		return opaque(text)
	}
	return v
}

// sameValue reports whether two encodings stand for one value. Gob writes maps
// in random order, so what fell back to gob is compared decoded.
func sameValue(a, b string) bool {
	if a == b {
		return true
	}
	if a == "" || b == "" || a[0] != kindGob || b[0] != kindGob {
		return false
	}
	va, errA := textCodec{}.decode(a)
	vb, errB := textCodec{}.decode(b)
	return errA == nil && errB == nil && reflect.DeepEqual(va, vb)
}
