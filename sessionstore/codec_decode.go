package sessionstore

import "reflect"

// decodeValue returns the value that appendValue encoded. Text of any other
// origin gives an error, since each value has one encoding. What it allocates
// is at most 160 times as long as text; the worst is many maps of one entry,
// since Go makes room for eight in each. On gob streams, encodeGob has more.
func (c codec) decodeValue(text string) (any, error) {
	if text == "" || len(text) > maxValueSize {
		return nil, errMalformed
	}
	if text[0] == tagString {
		return text[1:], nil
	}
	r := reader{text: text, types: c.types}
	if text[0] == tagGobs {
		var ok bool
		if r.text, r.gobs, ok = splitGobs(text); !ok {
			return nil, errMalformed
		}
	}
	v := r.any()
	if r.bad || r.text != "" || r.gobs != "" {
		return nil, errMalformed
	}
	return v, nil
}

// any reads a type and a value of it. The types that sessions mostly hold need
// no reflection.
func (r *reader) any() any {
	if r.text == "" {
		r.fail()
		return nil
	}
	switch tag := r.text[0]; tag {
	case tagNil:
		r.skip(1)
		return nil
	case tagBool:
		r.skip(1)
		return r.bool()
	case tagInt:
		r.skip(1)
		return r.int()
	case tagInt64:
		r.skip(1)
		return r.varint()
	case tagFloat64:
		r.skip(1)
		return r.float64()
	case tagString:
		r.skip(1)
		return r.string()
	case tagTime:
		r.skip(1)
		return r.time()
	case tagGob:
		r.skip(1)
		return r.gob()
	}
	return r.reflected()
}

// reflected reads what any has no shortcut for.
func (r *reader) reflected() any {
	tags, rest, ok := cutType(r.text)
	if !ok || tags[0] == tagAny {
		r.fail()
		return nil
	}
	t, ok := r.types.lookup(tags)
	if !ok {
		r.fail()
		return nil
	}
	r.text = rest
	into := reflect.New(t)
	switch into.Interface().(type) {
	case *[]string:
		return readSlice(r, r.string)
	case *[]any:
		return readSlice(r, r.any)
	case *map[string]string:
		return readMap(r, r.string)
	case *map[string]any:
		return readMap(r, r.any)
	}
	r.value(into.Elem())
	return into.Elem().Interface()
}

// value reads into v, which is zero, without a type in front.
func (r *reader) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := r.varint()
		r.bad = r.bad || v.OverflowInt(n)
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n := r.uvarint()
		r.bad = r.bad || v.OverflowUint(n)
		v.SetUint(n)
	case reflect.Float32:
		*v.Addr().Interface().(*float32) = r.float32() // SetFloat would change some NaNs
	case reflect.Float64:
		v.SetFloat(r.float64())
	case reflect.String:
		v.SetString(r.string())
	case reflect.Struct:
		v.Set(reflect.ValueOf(r.time()))
	case reflect.Interface:
		if elem := r.any(); elem != nil {
			v.Set(reflect.ValueOf(elem))
		}
	case reflect.Slice:
		r.slice(v)
	case reflect.Map:
		r.mapping(v)
	}
}

func (r *reader) slice(v reflect.Value) {
	n, ok := r.enter()
	if !ok {
		return
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.SetBytes([]byte(r.take(n)))
	} else {
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			r.value(v.Index(i))
		}
	}
	r.depth--
}

func (r *reader) mapping(v reflect.Value) {
	n, ok := r.enter()
	if !ok {
		return
	}
	t := v.Type()
	v.Set(reflect.MakeMapWithSize(t, n))
	if n == 0 {
		r.depth--
		return
	}
	last, key, elem := reflect.New(t.Key()).Elem(), reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
	for i := range n {
		r.value(key)
		if r.bad || i > 0 && compareKeys(last, key) >= 0 {
			r.fail()
			return
		}
		elem.SetZero()
		r.value(elem)
		v.SetMapIndex(key, elem)
		last.Set(key)
	}
	r.depth--
}

func readSlice[V any](r *reader, elem func() V) []V {
	n, ok := r.enter()
	if !ok {
		return nil
	}
	s := make([]V, n)
	for i := range s {
		if r.bad {
			return nil
		}
		s[i] = elem()
	}
	r.depth--
	return s
}

func readMap[V any](r *reader, elem func() V) map[string]V {
	n, ok := r.enter()
	if !ok {
		return nil
	}
	m := make(map[string]V, n)
	last := ""
	for i := range n {
		key := r.string()
		if r.bad || i > 0 && key <= last {
			r.fail()
			return nil
		}
		m[key] = elem()
		last = key
	}
	r.depth--
	return m
}

// enter begins a slice or map and returns its length, which is no more than
// what is left to read: each element takes a byte at least. False: it is nil,
// or something is bad.
func (r *reader) enter() (n int, ok bool) {
	u := r.uvarint()
	if u == 0 {
		return 0, false
	}
	if r.depth >= maxDepth || u-1 > uint64(len(r.text)) {
		r.fail()
		return 0, false
	}
	r.depth++
	return int(u - 1), true
}

// gob reads the next of the value's gob streams.
func (r *reader) gob() any {
	stream, rest, ok := cutText(r.gobs)
	if !ok {
		r.fail()
		return nil
	}
	r.gobs = rest
	v, err := decodeGob(stream)
	if err != nil {
		r.fail()
	}
	return v
}
