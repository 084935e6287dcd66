package storetest

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/alexedwards/scs/v2"

	"github.com/shardhop/shardhop/internal/route"
)

// Manager is what applications call: the methods of an scs.SessionManager, or
// of what shadows some of them.
type Manager interface {
	Load(ctx context.Context, token string) (context.Context, error)
	LoadAndSave(next http.Handler) http.Handler
	Commit(ctx context.Context) (token string, expiry time.Time, err error)
	Destroy(ctx context.Context) error
	RenewToken(ctx context.Context) error
	MergeSession(ctx context.Context, token string) error
	Iterate(ctx context.Context, fn func(context.Context) error) error

	Status(ctx context.Context) scs.Status
	Token(ctx context.Context) string
	Deadline(ctx context.Context) time.Time
	SetDeadline(ctx context.Context, deadline time.Time)
	RememberMe(ctx context.Context, remember bool)

	Put(ctx context.Context, key string, value any)
	Remove(ctx context.Context, key string)
	Clear(ctx context.Context) error
	Exists(ctx context.Context, key string) bool
	Keys(ctx context.Context) []string

	Get(ctx context.Context, key string) any
	GetString(ctx context.Context, key string) string
	GetBool(ctx context.Context, key string) bool
	GetInt(ctx context.Context, key string) int
	GetInt32(ctx context.Context, key string) int32
	GetInt64(ctx context.Context, key string) int64
	GetFloat(ctx context.Context, key string) float64
	GetBytes(ctx context.Context, key string) []byte
	GetTime(ctx context.Context, key string) time.Time
	Pop(ctx context.Context, key string) any
	PopString(ctx context.Context, key string) string
	PopBool(ctx context.Context, key string) bool
	PopInt(ctx context.Context, key string) int
	PopFloat(ctx context.Context, key string) float64
	PopBytes(ctx context.Context, key string) []byte
	PopTime(ctx context.Context, key string) time.Time
}

// Routes keeps a route beside the values of a session.
type Routes interface {
	Route(ctx context.Context) (route.Route, bool)
	Claim(ctx context.Context, next route.Route) (route.Route, error)
}

// Subject is a session manager under test, on a store that holds nothing.
type Subject struct {
	Manager
	// Settings is the scs manager whose fields configure Manager.
	Settings *scs.SessionManager
	// Stored counts what the store holds, sessions and remains alike.
	Stored func(t testing.TB) int
	// Lasting counts what the store holds and would hold for ever. Nil: the
	// store cannot tell.
	Lasting func(t testing.TB) int
	// Fail makes every call of the store fail, until it is called with false.
	Fail func(broken bool)
	// Routes is nil when the manager keeps no routes.
	Routes Routes
	// Atomic declares that keys belong together. Nil: the manager cannot.
	Atomic func(keys ...string)
}

// Harness opens a subject that ends with t.
type Harness func(t testing.TB) Subject

// Case is one thing that a manager has to do.
type Case struct {
	Name string
	test func(t testing.TB, open Harness)
}

// Run checks all that a store of players' sessions has to do.
func Run(t *testing.T, open Harness) {
	t.Helper()
	RunDocumented(t, open)
	runCases(t, open, Promised())
}

// RunDocumented checks what scs documents of every manager.
func RunDocumented(t *testing.T, open Harness) {
	t.Helper()
	runCases(t, open, documented())
}

func runCases(t *testing.T, open Harness, cases []Case) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.test(t, open)
		})
	}
}

// Holds reports whether a manager passes the case, without failing t.
func (c Case) Holds(t testing.TB, open Harness) bool {
	t.Helper()
	judge := &recorder{TB: t}
	judge.watch(func() { c.test(judge, open) })
	return !judge.Failed()
}

func documented() []Case {
	return slices.Concat(valueCases(), flashCases(), statusCases(), tokenCases(), iterateCases(), lifetimeCases(), cookieCases())
}

// Promised returns the cases beyond what scs documents.
func Promised() []Case {
	return slices.Concat(overlapCases(), logoutCases(), renewalCases(), routeCases(), answerCases(), streamCases(), socketCases())
}
