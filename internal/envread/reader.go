// Package envread reads settings from variables and collects everything that
// is wrong with them, so that whoever starts a program is told once, and of all
// of it.
//
// An empty variable counts as unset. A set but malformed one is a problem,
// never a silent default. Each problem names the variable, what is wrong with
// it, and the expected form. A value is quoted only when it is too plain to be
// a data source name, a URL or a key.
package envread

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Reader reads variables from a map. Reading a malformed one gives the default
// and keeps a problem for [Reader.Err]. It is for one goroutine.
type Reader struct {
	vars     map[string]string
	asked    map[string]bool
	problems []Problem
}

// New returns a reader of vars, which it does not change.
func New(vars map[string]string) *Reader {
	return &Reader{vars: vars, asked: make(map[string]bool)}
}

// Environ returns the environment of the process in the form that New takes.
func Environ() map[string]string {
	vars := make(map[string]string)
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		vars[name] = value
	}
	return vars
}

// Parse parses variables, of which err tells what could not be read. The error
// names what was wrong in either step; with one, the value is zero.
func Parse[T any](vars map[string]string, err error, parse func(map[string]string) (T, error)) (T, error) {
	r := New(nil)
	r.Add(err)
	v, err := parse(vars)
	r.Add(err)
	if err := r.Err(); err != nil {
		var none T
		return none, err
	}
	return v, nil
}

// value returns the value of a variable, and whether it is set.
func (r *Reader) value(name string) (string, bool) {
	r.asked[name] = true
	v := r.vars[name]
	return v, v != ""
}

// String returns the value of a variable, or def. It is never quoted.
func (r *Reader) String(name, def string) string {
	if v, ok := r.value(name); ok {
		return v
	}
	return def
}

// Required returns the value of a variable that has to be set; form says in
// words what it should look like.
func (r *Reader) Required(name, form string) string {
	v, ok := r.value(name)
	if !ok {
		r.Problemf(name, "is not set: want %s", form)
	}
	return v
}

const durationForm = "a duration of more than 0, such as 500ms, 5s or 1m30s"

// Duration returns a duration of more than 0, or def.
func (r *Reader) Duration(name string, def time.Duration) time.Duration {
	v, ok := r.value(name)
	if !ok {
		return def
	}
	d, err := time.ParseDuration(v)
	if err != nil || d <= 0 {
		r.malformed(name, v, durationForm)
		return def
	}
	return d
}

// DurationOrOff is Duration, where the word "off" means 0.
func (r *Reader) DurationOrOff(name string, def time.Duration) time.Duration {
	v, ok := r.value(name)
	if !ok {
		return def
	}
	if v == "off" {
		return 0
	}
	d, err := time.ParseDuration(v)
	if err != nil || d <= 0 {
		r.malformed(name, v, `"off" or `+durationForm)
		return def
	}
	return d
}

// Int returns a whole number from low to high, both included, or def.
func (r *Reader) Int(name string, def, low, high int) int {
	v, ok := r.value(name)
	if !ok {
		return def
	}
	n, err := strconv.Atoi(v)
	if err == nil && n >= low && n <= high {
		return n
	}
	form := fmt.Sprintf("a whole number from %d to %d", low, high)
	if high == math.MaxInt {
		form = fmt.Sprintf("a whole number of at least %d", low)
	}
	r.malformed(name, v, form)
	return def
}

// Bool returns what 1, true, 0 or false says, or def.
func (r *Reader) Bool(name string, def bool) bool {
	v, ok := r.value(name)
	if !ok {
		return def
	}
	switch v {
	case "1", "true":
		return true
	case "0", "false":
		return false
	}
	r.malformed(name, v, "1 or true, 0 or false")
	return def
}

// OneOf returns one of the allowed words, or def.
func OneOf[T ~string](r *Reader, name string, def T, allowed ...T) T {
	v, ok := r.value(name)
	if !ok {
		return def
	}
	if slices.Contains(allowed, T(v)) {
		return T(v)
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	r.malformed(name, v, "one of "+strings.Join(words, ", "))
	return def
}

// Unasked lists, in order, the set variables with this prefix that no call has
// asked for: what a misspelt name leads to.
func (r *Reader) Unasked(prefix string) []string {
	var names []string
	for name, v := range r.vars {
		if v != "" && strings.HasPrefix(name, prefix) && !r.asked[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (r *Reader) malformed(name, value, form string) {
	r.Problemf(name, "%s, want %s", Quote(value), form)
}

// Quote returns value in quotes when it is so short and plain that it can be
// no secret with its surroundings, and otherwise only says how long it is.
func Quote(value string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_.,+- ", c)
	}
	if len(value) > 40 || strings.ContainsFunc(value, func(c rune) bool { return !plain(c) }) {
		return fmt.Sprintf("a value of %d bytes that is not shown", len(value))
	}
	return strconv.Quote(value)
}
