package sessionstore

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"
)

// field is one field of a session's hash: d:<key> and an encoded value.
type field struct {
	name, value string
}

// codec is the scs.Codec between a session's values and their packed fields.
// The packed form lives in memory only: scs hands it from Decode's caller to
// the store and back, and the store writes one hash field per value. The shard
// comes in as the value of db_server and never goes out, so that only a claim
// changes a route.
//
// It is safe for use by several goroutines, which share its types.
type codec struct {
	types *typeTable
}

func newCodec() codec { return codec{types: newTypeTable(maxTypes)} }

// Encode packs the values in the order of their keys.
func (c codec) Encode(deadline time.Time, values map[string]any) ([]byte, error) {
	var few [32]string // on the stack, enough for nearly every session
	keys := few[:0]
	size := 0
	for key := range values {
		if key != fieldShard {
			keys = append(keys, key)
			size += len(valuePrefix) + len(key) + usualValue
		}
	}
	slices.Sort(keys)
	packed := packHeader(deadline.UnixMilli(), len(keys), size)
	for _, key := range keys {
		packed = binary.AppendUvarint(packed, uint64(len(valuePrefix)+len(key)))
		packed = append(packed, valuePrefix...)
		packed = append(packed, key...)
		var err error
		if packed, err = packValue(packed, values[key]); err != nil {
			return nil, fmt.Errorf("%w: that of %q: %w", ErrValue, key, err)
		}
	}
	return packed, nil
}

// usualValue is the room that Encode sets aside for a value of unknown size.
const usualValue = 32

// packValue appends v with its length in front. Nearly all values are short
// enough for a length of one byte.
func packValue(packed []byte, v any) ([]byte, error) {
	packed = append(packed, 0)
	start := len(packed)
	packed, err := appendValue(packed, v)
	if err != nil {
		return nil, err
	}
	n := len(packed) - start
	if n <= 0x7f {
		packed[start-1] = byte(n)
		return packed, nil
	}
	length := binary.AppendUvarint(nil, uint64(n))
	return slices.Replace(packed, start-1, start, length...), nil
}

// Decode unpacks what the store packed.
func (c codec) Decode(packed []byte) (time.Time, map[string]any, error) {
	deadline, count, text, err := unpackHeader(packed)
	if err != nil {
		return time.Time{}, nil, err
	}
	values := make(map[string]any, count)
	for range count {
		var f field
		if f, text, err = unpackField(text); err != nil {
			return time.Time{}, nil, err
		}
		if f.name == fieldShard {
			values[fieldShard] = f.value
			continue
		}
		values[strings.TrimPrefix(f.name, valuePrefix)] = c.decodeOrKeep(f.value)
	}
	return time.UnixMilli(deadline).UTC(), values, nil
}

// opaque is a value that this program cannot decode: of a type that it does
// not know, of a later format, or damaged. It reads as no value of any type and
// is stored again as it was, so that one bad value neither locks a player out
// nor gets lost.
type opaque string

// decodeOrKeep decodes text, or keeps it as it is.
func (c codec) decodeOrKeep(text string) any {
	v, err := c.decodeValue(text)
	if err != nil {
		return opaque(text)
	}
	return v
}

// packRecord packs a loaded session; shard is shown as db_server unless empty.
func packRecord(deadline int64, values []field, shard string) []byte {
	n, size := len(values), len(shard)+16
	for _, f := range values {
		size += len(f.name) + len(f.value) + 4
	}
	if shard != "" {
		n++
	}
	packed := packHeader(deadline, n, size)
	for _, f := range values {
		packed = packField(packed, f.name, f.value)
	}
	if shard != "" {
		packed = packField(packed, fieldShard, shard)
	}
	return packed
}

func packHeader(deadline int64, n, size int) []byte {
	packed := make([]byte, 0, 2*binary.MaxVarintLen64+size)
	packed = binary.AppendVarint(packed, deadline)
	return binary.AppendUvarint(packed, uint64(n))
}

func packField(packed []byte, name, value string) []byte {
	return appendText(appendText(packed, name), value)
}

// unpack reads what packHeader and packField wrote. The fields share one copy
// of the data.
func unpack(packed []byte) (deadline int64, fields []field, err error) {
	deadline, count, text, err := unpackHeader(packed)
	if err != nil {
		return 0, nil, err
	}
	fields = make([]field, 0, count)
	for range count {
		var f field
		if f, text, err = unpackField(text); err != nil {
			return 0, nil, err
		}
		fields = append(fields, f)
	}
	return deadline, fields, nil
}

// unpackHeader returns the number of fields, which is no more than text can
// hold, and the text that they are in.
func unpackHeader(packed []byte) (deadline int64, count int, text string, err error) {
	deadline, n := binary.Varint(packed)
	if n <= 0 {
		return 0, 0, "", errMalformed
	}
	rest := packed[n:]
	fields, n := binary.Uvarint(rest)
	// Every field takes two bytes at least, so a count beyond that is a lie
	// that would make the map huge.
	if n <= 0 || fields > uint64(len(rest)/2) {
		return 0, 0, "", errMalformed
	}
	return deadline, int(fields), string(rest[n:]), nil
}

func unpackField(text string) (f field, rest string, err error) {
	name, rest, ok := cutText(text)
	if !ok {
		return field{}, "", errMalformed
	}
	value, rest, ok := cutText(rest)
	if !ok {
		return field{}, "", errMalformed
	}
	return field{name, value}, rest, nil
}

// appendText appends a text with its length in front.
func appendText(buf []byte, text string) []byte {
	buf = binary.AppendUvarint(buf, uint64(len(text)))
	return append(buf, text...)
}

// cutText cuts a text off the front of s that appendText appended.
func cutText(s string) (text, rest string, ok bool) {
	length, n := cutUvarint(s)
	if n == 0 || length > uint64(len(s)-n) {
		return "", "", false
	}
	end := n + int(length)
	return s[n:end], s[end:], true
}

// cutUvarint is binary.Uvarint for a string. It returns the number of bytes
// read, 0 for what AppendUvarint does not write.
func cutUvarint(s string) (u uint64, n int) {
	if len(s) > 0 && s[0] < 0x80 {
		return uint64(s[0]), 1
	}
	var shift uint
	for i := range min(len(s), binary.MaxVarintLen64) {
		b := s[i]
		if b >= 0x80 {
			u |= uint64(b&0x7f) << shift
			shift += 7
			continue
		}
		if b == 0 || i == binary.MaxVarintLen64-1 && b > 1 {
			return 0, 0 // longer than it needs to be, or than 64 bits
		}
		return u | uint64(b)<<shift, i + 1
	}
	return 0, 0
}
