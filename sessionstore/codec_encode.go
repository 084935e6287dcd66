package sessionstore

import (
	"cmp"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"time"
)

const (
	// maxDepth is how many slices and maps a value may nest.
	maxDepth = 32
	// maxValueSize is the size of the largest value that is stored or read,
	// in bytes of its encoding.
	maxValueSize = 1 << 20
	// maxSessionSize is the size up to which a session is saved, in bytes of all
	// values and their names. Each request reads all of it, within the timeout.
	maxSessionSize = 4 << 20
)

// appendValue appends the encoding of v, which is the same for equal values
// but where gob has to help out.
func appendValue(buf []byte, v any) ([]byte, error) {
	start := len(buf)
	e := encoder{buf: buf, limit: start + maxValueSize}
	switch v := v.(type) {
	case string:
		// By itself it needs no length.
		e.buf = append(append(buf, tagString), v...)
	case opaque:
		return append(buf, v...), nil
	default:
		e.any(v)
	}
	if len(e.gobs) > 0 {
		e.buf = joinGobs(buf, string(e.buf[start:]), e.gobs)
	}
	if len(e.buf) > e.limit {
		e.fail(errTooLarge)
	}
	if e.err != nil {
		return nil, e.err
	}
	return e.buf, nil
}

// encoder appends to buf until something is wrong.
type encoder struct {
	limit int

	buf   []byte
	gobs  []byte // the gob streams of a value, each with its length in front
	depth int
	err   error
}

// any appends the type of v and v. The types that sessions mostly hold need no
// reflection.
func (e *encoder) any(v any) {
	switch v := v.(type) {
	case nil:
		e.buf = append(e.buf, tagNil)
	case bool:
		e.buf = append(e.buf, tagBool)
		e.bool(v)
	case int:
		e.buf = binary.AppendVarint(append(e.buf, tagInt), int64(v))
	case int64:
		e.buf = binary.AppendVarint(append(e.buf, tagInt64), v)
	case float64:
		e.buf = append(e.buf, tagFloat64)
		e.float64(v)
	case string:
		e.buf = appendText(append(e.buf, tagString), v)
	case time.Time:
		e.buf = appendTime(append(e.buf, tagTime), v)
	case []string:
		e.buf = append(e.buf, tagSlice, tagString)
		appendSlice(e, v, e.string)
	case []any:
		e.buf = append(e.buf, tagSlice, tagAny)
		appendSlice(e, v, e.any)
	case map[string]string:
		e.buf = append(e.buf, tagMap, tagString, tagString)
		appendMap(e, v, e.string)
	case map[string]any:
		e.buf = append(e.buf, tagMap, tagString, tagAny)
		appendMap(e, v, e.any)
	default:
		e.reflected(reflect.ValueOf(v))
	}
}

// reflected appends the type of v and v, by gob if the format has no such type.
func (e *encoder) reflected(v reflect.Value) {
	start := len(e.buf)
	buf, ok := appendType(e.buf, v.Type())
	if ok {
		e.buf = buf
		e.value(v)
		return
	}
	e.buf = append(e.buf[:start], tagGob)
	stream, err := encodeGob(v.Interface())
	if err != nil {
		e.fail(err)
		return
	}
	e.gobs = appendText(e.gobs, stream)
}

// value appends v without its type, which is one that appendType takes.
func (e *encoder) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		e.bool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.buf = binary.AppendVarint(e.buf, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		e.buf = binary.AppendUvarint(e.buf, v.Uint())
	case reflect.Float32:
		e.buf = binary.LittleEndian.AppendUint32(e.buf, math.Float32bits(v.Interface().(float32))) // Float would change some NaNs
	case reflect.Float64:
		e.float64(v.Float())
	case reflect.String:
		e.string(v.String())
	case reflect.Struct:
		e.buf = appendTime(e.buf, v.Interface().(time.Time))
	case reflect.Interface:
		e.any(v.Interface())
	case reflect.Slice:
		e.slice(v)
	case reflect.Map:
		e.mapping(v)
	}
}

func (e *encoder) bool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	e.buf = append(e.buf, b)
}

func (e *encoder) float64(v float64) {
	e.buf = binary.LittleEndian.AppendUint64(e.buf, math.Float64bits(v))
}

func (e *encoder) string(v string) { e.buf = appendText(e.buf, v) }

func (e *encoder) slice(v reflect.Value) {
	if !e.enter(v.Len(), v.IsNil()) {
		return
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		e.buf = append(e.buf, v.Bytes()...)
	} else {
		for i := range v.Len() {
			e.value(v.Index(i))
		}
	}
	e.depth--
}

func (e *encoder) mapping(v reflect.Value) {
	if !e.enter(v.Len(), v.IsNil()) {
		return
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, compareKeys)
	for _, key := range keys {
		e.value(key)
		e.value(v.MapIndex(key))
	}
	e.depth--
}

func appendSlice[V any](e *encoder, s []V, elem func(V)) {
	if !e.enter(len(s), s == nil) {
		return
	}
	for _, v := range s {
		elem(v)
	}
	e.depth--
}

func appendMap[V any](e *encoder, m map[string]V, elem func(V)) {
	if !e.enter(len(m), m == nil) {
		return
	}
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		e.string(key)
		elem(m[key])
	}
	e.depth--
}

// enter begins a slice or map of n elements with n+1, or with 0 if it is nil.
// False: there is nothing to append to it.
func (e *encoder) enter(n int, isNil bool) bool {
	switch {
	case e.err != nil:
		return false
	case isNil:
		e.buf = append(e.buf, 0)
		return false
	case e.depth >= maxDepth:
		e.fail(errTooDeep)
		return false
	case len(e.buf) > e.limit:
		e.fail(errTooLarge)
		return false
	}
	e.buf = binary.AppendUvarint(e.buf, uint64(n)+1)
	e.depth++
	return true
}

func (e *encoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// compareKeys orders the keys of a map.
func compareKeys(a, b reflect.Value) int {
	switch {
	case a.CanInt():
		return cmp.Compare(a.Int(), b.Int())
	case a.CanUint():
		return cmp.Compare(a.Uint(), b.Uint())
	case a.Kind() == reflect.Bool:
		return compareBools(a.Bool(), b.Bool())
	}
	return cmp.Compare(a.String(), b.String())
}

// compareBools puts false before true.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
