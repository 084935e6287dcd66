package sessionstore

import (
	"encoding/binary"
	"sort"
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
type codec struct {
	values valueCodec
}

// Encode packs the values in the order of their keys.
func (c codec) Encode(deadline time.Time, values map[string]interface{}) ([]byte, error) {
	keys := make([]string, 0, len(values))
	for key := range values {
		if key != fieldShard {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	packed := packHeader(deadline.UnixMilli(), len(keys), 32*len(keys))
	for _, key := range keys {
		value, err := c.values.encode(values[key])
		if err != nil {
			return nil, err
		}
		packed = packField(packed, valuePrefix+key, value)
	}
	return packed, nil
}

// Decode unpacks what the store packed.
func (c codec) Decode(packed []byte) (time.Time, map[string]interface{}, error) {
	deadline, fields, err := unpack(packed)
	if err != nil {
		return time.Time{}, nil, err
	}
	values := make(map[string]interface{}, len(fields))
	for _, f := range fields {
		if f.name == fieldShard {
			values[fieldShard] = f.value
			continue
		}
		values[strings.TrimPrefix(f.name, valuePrefix)] = decodeOrKeep(c.values, f.value)
	}
	return time.UnixMilli(deadline).UTC(), values, nil
}

// packRecord packs a loaded session; shard is shown as db_server unless empty.
func packRecord(deadline int64, values map[string]string, shard string) []byte {
	n, size := len(values), len(shard)+16
	for name, value := range values {
		size += len(name) + len(value) + 4
	}
	if shard != "" {
		n++
	}
	packed := packHeader(deadline, n, size)
	for name, value := range values {
		packed = packField(packed, name, value)
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
	packed = binary.AppendUvarint(packed, uint64(len(name)))
	packed = append(packed, name...)
	packed = binary.AppendUvarint(packed, uint64(len(value)))
	return append(packed, value...)
}

// unpack reads what packHeader and packField wrote. The fields share one copy
// of the data.
func unpack(packed []byte) (deadline int64, fields []field, err error) {
	deadline, n := binary.Varint(packed)
	if n <= 0 {
		return 0, nil, errMalformed
	}
	rest := packed[n:]
	count, n := binary.Uvarint(rest)
	// Every field takes two bytes at least, so a count beyond that is a lie
	// that would make the slice huge.
	if n <= 0 || count > uint64(len(rest)/2) {
		return 0, nil, errMalformed
	}
	text := string(rest[n:])
	fields = make([]field, 0, count)
	for range count {
		var f field
		var ok bool
		if f.name, text, ok = cutText(text); !ok {
			return 0, nil, errMalformed
		}
		if f.value, text, ok = cutText(text); !ok {
			return 0, nil, errMalformed
		}
		fields = append(fields, f)
	}
	return deadline, fields, nil
}

// cutText cuts a length-prefixed text off the front of s.
func cutText(s string) (text, rest string, ok bool) {
	head := s[:min(len(s), binary.MaxVarintLen64)]
	length, n := binary.Uvarint([]byte(head))
	if n <= 0 || length > uint64(len(s)-n) {
		return "", "", false
	}
	end := n + int(length)
	return s[n:end], s[end:], true
}
