package envread

import (
	"errors"
	"fmt"
	"strings"
)

// Problem is what is wrong with one variable, or with several together, when
// Variable is empty.
type Problem struct {
	Variable string
	Text     string
}

func (p Problem) String() string {
	if p.Variable == "" {
		return p.Text
	}
	return p.Variable + ": " + p.Text
}

// Error holds all problems in the order in which they were found. It reads as
// one line.
type Error struct {
	Problems []Problem
}

func (e *Error) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.String()
	}
	return strings.Join(texts, "; ")
}

// Problemf keeps a problem with a variable. The text must not hold its value
// when that may be secret; see [Quote].
func (r *Reader) Problemf(variable, format string, args ...any) {
	r.problems = append(r.problems, Problem{Variable: variable, Text: fmt.Sprintf(format, args...)})
}

// Add keeps what err tells, which may be nil, an [*Error] or a joined error,
// among the problems of r.
func (r *Reader) Add(err error) {
	if err == nil {
		return
	}
	if e, ok := errors.AsType[*Error](err); ok {
		r.problems = append(r.problems, e.Problems...)
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			r.Add(e)
		}
		return
	}
	r.Problemf("", "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
}

// Err returns an [*Error] with everything that was wrong, or nil.
func (r *Reader) Err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return &Error{Problems: r.problems}
}
