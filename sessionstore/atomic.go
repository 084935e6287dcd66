package sessionstore

import "slices"

// groups holds, for every field that belongs to an atomic group, the fields of
// that group, itself included. It does not change once requests are served.
type groups map[string][]string

// Atomic declares that the values of keys belong together, as a user's id and
// role do: a request that changes one of them writes all of them as it sees
// them, so that of two requests at once one wins whole, and nobody gets the id
// of the one with the role of the other. Without it, each key is on its own.
//
// Call it at start-up, before the first request, once for each group. It
// panics when a group has fewer than two keys, or a key is in two groups.
func (m *Manager) Atomic(keys ...string) {
	if len(keys) < 2 {
		panic("sessionstore: Atomic needs two keys at least")
	}
	fields := make([]string, len(keys))
	for i, key := range keys {
		fields[i] = valuePrefix + key
	}
	for i, field := range fields {
		if m.store.atomic[field] != nil || slices.Contains(fields[:i], field) {
			panic("sessionstore: Atomic: the key " + keys[i] + " is declared twice")
		}
	}
	for _, field := range fields {
		m.store.atomic[field] = fields
	}
}

// widen returns d with the whole of every group that d changes a part of, as
// mine has it. A field of the group that mine lacks is deleted, whether or not
// it was there at load: another request may have stored it since.
func (g groups) widen(d delta, mine []field) delta {
	if len(g) == 0 || d.empty() {
		return d
	}
	changed := make(map[string]bool) // true once it is in the wider delta
	for _, f := range d.set {
		g.mark(changed, f.name)
	}
	for _, name := range d.del {
		g.mark(changed, name)
	}
	if len(changed) == 0 {
		return d
	}
	return wider(d, changed, mine)
}

// mark adds the group of name to changed.
func (g groups) mark(changed map[string]bool, name string) {
	for _, member := range g[name] {
		changed[member] = false
	}
}

func wider(d delta, changed map[string]bool, mine []field) delta {
	for _, f := range d.set {
		changed[f.name] = true
	}
	for _, name := range d.del {
		changed[name] = true
	}
	for _, f := range mine {
		if in, ok := changed[f.name]; ok && !in {
			d.set = append(d.set, f)
			changed[f.name] = true
		}
	}
	for name, in := range changed {
		if !in {
			d.del = append(d.del, name)
		}
	}
	return d
}
