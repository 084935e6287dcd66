package storetest

import (
	"runtime"
	"sync"
	"testing"
)

// recorder is a testing.TB whose failures stay its own. Its methods are safe for
// use by several goroutines, as those of a real one.
type recorder struct {
	testing.TB

	mu     sync.Mutex
	failed bool
}

// watch runs test on a goroutine that FailNow can end, and waits for it. A
// panic counts as a failure.
func (r *recorder) watch(test func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if recover() != nil {
				r.Fail()
			}
		}()
		test()
	}()
	<-done
}

func (r *recorder) Fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) FailNow()              { r.Fail(); runtime.Goexit() }
func (r *recorder) Log(...any)            {}
func (r *recorder) Logf(string, ...any)   {}
func (r *recorder) Error(...any)          { r.Fail() }
func (r *recorder) Errorf(string, ...any) { r.Fail() }
func (r *recorder) Fatal(...any)          { r.FailNow() }
func (r *recorder) Fatalf(string, ...any) { r.FailNow() }
