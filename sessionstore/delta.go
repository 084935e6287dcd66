package sessionstore

// delta is what one request changed of a session's encoded values.
type delta struct {
	set []field
	del []string
}

func (d delta) empty() bool { return len(d.set) == 0 && len(d.del) == 0 }

// diff tells what turns base, the values that the request loaded, into mine.
// It compares encodings, since handlers change maps and slices in place.
func diff(base, mine []field) delta {
	var d delta
	kept, before := 0, fieldMap(base)
	for _, f := range mine {
		old, ok := before[f.name]
		if ok {
			kept++
		}
		if !ok || !sameValue(old, f.value) {
			d.set = append(d.set, f)
		}
	}
	if kept == len(base) {
		return d
	}
	present := fieldMap(mine)
	for _, f := range base {
		if _, ok := present[f.name]; !ok {
			d.del = append(d.del, f.name)
		}
	}
	return d
}

// merge applies a request's own changes to theirs, the values that Redis holds
// by now: a key that only one side changed keeps that change, and of two
// changes of one key the request's own stands.
func merge(theirs []field, own delta) map[string]string {
	merged := fieldMap(theirs)
	for _, f := range own.set {
		merged[f.name] = f.value
	}
	for _, name := range own.del {
		delete(merged, name)
	}
	return merged
}

// restricted returns the values of a session that follows one which is gone:
// those that the request itself stored, changed or not. own is what it changed
// and put the keys that it stored.
func restricted(mine []field, own delta, put map[string]struct{}) map[string]string {
	values := fieldMap(own.set)
	for _, f := range mine {
		if _, ok := put[f.name[len(valuePrefix):]]; ok {
			values[f.name] = f.value
		}
	}
	return values
}

func fieldMap(fields []field) map[string]string {
	m := make(map[string]string, len(fields))
	for _, f := range fields {
		m[f.name] = f.value
	}
	return m
}
