package lab

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
)

// Main runs the tests of a package with servers that all of them share: setUp
// starts the servers, and their clean-up runs after the last test. Call it from
// TestMain and exit with what it returns.
//
//	func TestMain(m *testing.M) {
//		os.Exit(lab.Main(m, func(t testing.TB) { server = lab.MariaDB(t) }, nil))
//	}
//
// It holds that no goroutine is left: verify is called after the clean-up, and
// may be nil.
func Main(m *testing.M, setUp func(t testing.TB), verify func() error) (code int) {
	t := &mainTB{}
	defer func() {
		t.cleanUp()
		if code == 0 && t.failed {
			code = 1
		}
		if code == 0 && verify != nil {
			if err := verify(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
	}()
	if !t.try(func() { setUp(t) }) {
		return 1
	}
	return m.Run()
}

// mainTB stands in for the test that servers are started by, where there is
// none yet. It is used by one goroutine.
type mainTB struct {
	testing.TB // never set: what is missing below fails loudly
	cleanups   []func()
	failed     bool
}

// try runs f on a goroutine of its own, which Fatal can end, and reports
// whether f went through.
func (t *mainTB) try(f func()) bool {
	done := make(chan bool)
	go func() {
		finished := false
		defer func() { done <- finished }()
		f()
		finished = true
	}()
	return <-done && !t.failed
}

func (t *mainTB) cleanUp() {
	for len(t.cleanups) > 0 {
		last := len(t.cleanups) - 1
		f := t.cleanups[last]
		t.cleanups = t.cleanups[:last]
		t.try(f)
	}
}

func (t *mainTB) Helper()                  {}
func (t *mainTB) Name() string             { return "TestMain" }
func (t *mainTB) Context() context.Context { return context.Background() }
func (t *mainTB) Cleanup(f func())         { t.cleanups = append(t.cleanups, f) }
func (t *mainTB) Failed() bool             { return t.failed }
func (t *mainTB) Fail()                    { t.failed = true }
func (t *mainTB) Log(args ...any)          { fmt.Fprintln(os.Stderr, args...) }
func (t *mainTB) Logf(f string, a ...any)  { fmt.Fprintf(os.Stderr, f+"\n", a...) }
func (t *mainTB) Error(args ...any)        { t.Log(args...); t.Fail() }
func (t *mainTB) Errorf(f string, a ...any) {
	t.Logf(f, a...)
	t.Fail()
}
func (t *mainTB) Fatal(args ...any)         { t.Error(args...); runtime.Goexit() }
func (t *mainTB) Fatalf(f string, a ...any) { t.Errorf(f, a...); runtime.Goexit() }
func (t *mainTB) FailNow()                  { t.Fail(); runtime.Goexit() }

func (t *mainTB) TempDir() string {
	dir, err := os.MkdirTemp("", "lab")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
