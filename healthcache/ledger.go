package healthcache

import (
	"crypto/sha1" //nolint:gosec // what Redis has; it guards nothing
	"encoding/hex"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ledger holds the values of keys that each beat looks at: it brings those that
// have changed, and confirms the others. Safe for use by several goroutines.
type ledger struct {
	keys atomic.Pointer[[]string] // in order; replaced as a whole
	// told is called, without locks, with the key of every value that is new.
	told func(key, before, now string)

	mu      sync.Mutex // guards entries; held for moments by beats, writers and readers
	entries map[string]entry
}

// entry is one value as it was read last.
type entry struct {
	value string    // empty: the key is not there
	at    time.Time // when the exchange began that confirmed it; zero: never
	since time.Time // when it was first read
	until time.Time // when it ends, where Redis does not see to that; zero: never
}

func newLedger(keys []string, told func(key, before, now string)) *ledger {
	l := &ledger{told: told, entries: make(map[string]entry, len(keys))}
	l.watch(keys)
	return l
}

// watch replaces the keys that each beat looks at, and returns those that have
// not been read yet.
func (l *ledger) watch(keys []string) (unread []string) {
	slices.Sort(keys)
	l.keys.Store(&keys)
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.entries, func(key string, _ entry) bool { return !slices.Contains(keys, key) })
	for _, key := range keys {
		if l.entries[key].at.IsZero() {
			unread = append(unread, key)
		}
	}
	return unread
}

// print is a short digest of a value, by which Redis tells whether it is
// another.
func (e entry) print() string {
	if e.at.IsZero() {
		return "unread"
	}
	sum := sha1.Sum([]byte(e.value)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:8])
}

// prints are the digests of the values of keys.
func (l *ledger) prints(keys []string) []any {
	l.mu.Lock()
	defer l.mu.Unlock()
	prints := make([]any, len(keys))
	for i, key := range keys {
		prints[i] = l.entries[key].print()
	}
	return prints
}

func (l *ledger) entry(key string) entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[key]
}

// learn takes in a value, read by an exchange that began at the time at. One
// that began before the last one says nothing new.
func (l *ledger) learn(key, value string, at time.Time) {
	l.mu.Lock()
	before := l.entries[key]
	newer := !at.Before(before.at)
	switch {
	case newer && value == before.value:
		before.at = at
		l.entries[key] = before
	case newer:
		l.entries[key] = entry{value: value, at: at, since: at}
	}
	l.mu.Unlock()
	if newer && before.value != value {
		l.told(key, before.value, value)
	}
}

// replaced takes in what stands in place of before after an exchange that began
// at the time at. A beat that began later and read before was answered sooner.
func (l *ledger) replaced(key, before, value string, at time.Time) {
	l.mu.Lock()
	if e := l.entries[key]; e.value == before && at.Before(e.at) {
		e.at = at
		l.entries[key] = e
	}
	l.mu.Unlock()
	l.learn(key, value, at)
}

// confirm notes that a value is as it was.
func (l *ledger) confirm(key string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[key]; at.After(e.at) {
		e.at = at
		l.entries[key] = e
	}
}

// limit has a value end by itself.
func (l *ledger) limit(key string, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	e.until = until
	l.entries[key] = e
}

// absorb takes in what a beat on a single server brought: for each key its
// value, or nothing where that is as it was. Nil says that all are.
func (l *ledger) absorb(keys []string, news []any, at time.Time) {
	if news == nil {
		news = make([]any, len(keys))
	}
	if len(news) != len(keys) {
		return
	}
	for i, key := range keys {
		if value, changed := news[i].(string); changed {
			l.learn(key, value, at)
		} else {
			l.confirm(key, at)
		}
	}
}

// absorbCells takes in what reading each of keys brought.
func (l *ledger) absorbCells(keys []string, cells []cell, at time.Time) {
	for i, key := range keys {
		if c := cells[i]; !c.failed {
			l.learn(key, c.value, at)
		}
	}
}
