package sessionstore

import (
	"reflect"
	"strings"
	"sync"
	"time"
)

// A value begins with the tags of its type, which is a chain: any number of
// tagSlice and of tagMap with the tag of its key, then one tag that needs no
// other. []map[string]int is tagSlice tagMap tagString tagInt.
//
// Tags lie between 0x80 and 0xf7, where no gob stream begins. The numbers are
// the format: a new tag goes to the end, and a format of another kind may take
// any first byte that is not used here. Programs that do not know it keep such
// values as they are.
const (
	tagNil byte = 0x80 + iota
	tagBool
	tagInt
	tagInt8
	tagInt16
	tagInt32
	tagInt64
	tagUint
	tagUint8
	tagUint16
	tagUint32
	tagUint64
	tagString
	tagFloat32
	tagFloat64
	tagBytes
	tagTime
	tagDuration
	tagAny // only as an element's type: the element has its own
	tagSlice
	tagMap
	tagGob  // only in a value with tagGobs: the next of its gob streams
	tagGobs // see splitGobs
)

// refersToMore reports whether an encoded value is one that can change in place.
func refersToMore(text string) bool {
	if text == "" {
		return false // nobody wrote it so
	}
	switch text[0] {
	case tagBytes, tagSlice, tagMap, tagGobs:
		return true
	}
	return false
}

const (
	// maxTypeDepth is how many slices and maps a type may nest, as in
	// []map[string][]int, which has three.
	maxTypeDepth = 4
	// maxTypes is how many types a typeTable makes.
	maxTypes = 512
)

// leafTypes are the types of the tags from tagBool to tagAny.
var leafTypes = [...]reflect.Type{
	reflect.TypeFor[bool](),
	reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](), reflect.TypeFor[int64](),
	reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](), reflect.TypeFor[uint64](),
	reflect.TypeFor[string](),
	reflect.TypeFor[float32](), reflect.TypeFor[float64](),
	reflect.TypeFor[[]byte](), reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](), reflect.TypeFor[any](),
}

// leafTags inverts leafTypes.
var leafTags = func() map[reflect.Type]byte {
	tags := make(map[reflect.Type]byte, len(leafTypes))
	for i, t := range leafTypes {
		tags[t] = tagBool + byte(i)
	}
	return tags
}()

func isLeaf(tag byte) bool { return tagBool <= tag && tag <= tagAny }

// isKey reports whether maps with keys of this type are in the format: those
// that order and equality are plain for.
func isKey(tag byte) bool { return tagBool <= tag && tag <= tagString || tag == tagDuration }

// appendType appends the tags of t. False: the format has no such type.
func appendType(buf []byte, t reflect.Type) ([]byte, bool) {
	for range maxTypeDepth + 1 {
		if tag, ok := leafTags[t]; ok {
			return append(buf, tag), true
		}
		switch {
		case t.Name() != "":
			return buf, false
		case t.Kind() == reflect.Slice:
			buf = append(buf, tagSlice)
		case t.Kind() == reflect.Map && isKey(leafTags[t.Key()]):
			buf = append(buf, tagMap, leafTags[t.Key()])
		default:
			return buf, false
		}
		t = t.Elem()
	}
	return buf, false
}

// cutType cuts the tags of a type off the front of text. It accepts what
// appendType writes and nothing else.
func cutType(text string) (tags, rest string, ok bool) {
	i := 0
	for range maxTypeDepth + 1 {
		if i >= len(text) {
			break
		}
		switch tag := text[i]; {
		case isLeaf(tag):
			return text[:i+1], text[i+1:], true
		case tag == tagSlice && i+1 < len(text) && text[i+1] != tagUint8: // that is tagBytes
			i++
		case tag == tagMap && i+1 < len(text) && isKey(text[i+1]):
			i += 2
		default:
			return "", text, false
		}
	}
	return "", text, false
}

// typeTable makes the types that values name. Reflection keeps each type that
// it makes until the program ends, and the format can name tens of thousands,
// so a table makes no more than its limit: a program has some dozens, and what
// goes beyond is somebody else's doing. It is safe for use by several
// goroutines.
type typeTable struct {
	limit int

	mu    sync.RWMutex
	types map[string]reflect.Type // by their tags, shared by all who decode
}

func newTypeTable(limit int) *typeTable {
	return &typeTable{limit: limit, types: make(map[string]reflect.Type)}
}

// lookup returns the type of tags that cutType accepted. False: the table is
// full.
func (tt *typeTable) lookup(tags string) (reflect.Type, bool) {
	if isLeaf(tags[0]) {
		return leafTypes[tags[0]-tagBool], true
	}
	tt.mu.RLock()
	t, ok := tt.types[tags]
	tt.mu.RUnlock()
	if ok {
		return t, true
	}
	return tt.add(tags)
}

func (tt *typeTable) add(tags string) (reflect.Type, bool) {
	inner := tags[1:]
	if tags[0] == tagMap {
		inner = tags[2:]
	}
	elem, ok := tt.lookup(inner)
	if !ok {
		return nil, false
	}
	tt.mu.Lock()
	defer tt.mu.Unlock()
	if t, ok := tt.types[tags]; ok {
		return t, true // another goroutine was faster
	}
	if len(tt.types) >= tt.limit {
		return nil, false
	}
	t := makeType(tags, elem)
	tt.types[strings.Clone(tags)] = t
	return t, true
}

func makeType(tags string, elem reflect.Type) reflect.Type {
	if tags[0] == tagMap {
		return reflect.MapOf(leafTypes[tags[1]-tagBool], elem)
	}
	return reflect.SliceOf(elem)
}
