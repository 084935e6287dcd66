package shardrouter_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardhop/shardhop/shardrouter"
)

// writable is a shard whose node proves writable when it is told to.
type writable struct {
	atomic.Bool
	looks atomic.Int32
}

func (w *writable) prove(context.Context) bool {
	w.looks.Add(1)
	return w.Load()
}

// held waits in a goroutine of its own, as a request that failed just now.
func held(ctx context.Context, h shardrouter.Hold) <-chan error {
	return heldSince(ctx, h, time.Now())
}

func heldSince(ctx context.Context, h shardrouter.Hold, since time.Time) <-chan error {
	failed, done := time.Now(), make(chan error, 1)
	go func() { done <- h.Wait(ctx, since, failed, nil) }()
	synctest.Wait()
	return done
}

// inHold runs f in virtual time, on a hold whose shard has one node.
func inHold(t *testing.T, most int, limit, pause time.Duration, f func(t *testing.T, h shardrouter.Hold, node *writable)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var node writable
		h := shardrouter.NewHold(most, limit, pause, node.prove)
		defer h.Close()
		f(t, h, &node)
	})
}

func TestHoldEndsWithAProof(t *testing.T) {
	inHold(t, 10, time.Minute, 200*time.Millisecond, func(t *testing.T, h shardrouter.Hold, node *writable) {
		start := time.Now()
		a, b := held(t.Context(), h), held(t.Context(), h)
		time.Sleep(5 * time.Second)
		if h.Waiting() != 2 {
			t.Fatalf("%d requests are held, want 2", h.Waiting())
		}
		node.Store(true)
		if err := errors.Join(<-a, <-b); err != nil {
			t.Fatalf("held requests got %v", err)
		}
		if took := time.Since(start); took > 5200*time.Millisecond {
			t.Errorf("they waited %v, want no longer than one look after the node came back", took)
		}
		if h.Outage() || h.Waiting() != 0 {
			t.Error("the outage goes on after its end")
		}
	})
}

// The time of a hold runs from the start of the outage, not of the request.
func TestHoldTimeCountsFromTheOutage(t *testing.T) {
	inHold(t, 10, time.Minute, time.Second, func(t *testing.T, h shardrouter.Hold, node *writable) {
		start := time.Now()
		first := held(t.Context(), h)
		time.Sleep(50 * time.Second)
		second := held(t.Context(), h)
		for name, done := range map[string]<-chan error{"first": first, "second": second} {
			if err := <-done; !errors.Is(err, shardrouter.ErrHoldOver) {
				t.Errorf("the %s request got %v, want ErrHoldOver", name, err)
			}
		}
		if took := time.Since(start); took != time.Minute {
			t.Errorf("the last one was refused after %v of the outage, want one minute", took)
		}
		before := time.Now()
		if err := <-held(t.Context(), h); !errors.Is(err, shardrouter.ErrHoldOver) || time.Since(before) > 0 {
			t.Errorf("a request of a longer outage got %v after %v, want ErrHoldOver at once", err, time.Since(before))
		}
		node.Store(true)
		time.Sleep(2 * time.Second)
		if h.Over() || h.Outage() {
			t.Error("the end of a long outage was not seen within one look")
		}
	})
}

// An outage that others saw begin earlier leaves less time.
func TestHoldKnowsWhenTheOutageBegan(t *testing.T) {
	inHold(t, 10, time.Minute, time.Second, func(t *testing.T, h shardrouter.Hold, node *writable) {
		start := time.Now()
		done := heldSince(t.Context(), h, start.Add(-40*time.Second))
		if err := <-done; !errors.Is(err, shardrouter.ErrHoldOver) || time.Since(start) != 20*time.Second {
			t.Errorf("got %v after %v, want ErrHoldOver after 20s", err, time.Since(start))
		}
	})
}

// What was lent here meanwhile says that it began later: the others may go by a
// clock that is behind.
func TestHoldKnowsThatItServed(t *testing.T) {
	inHold(t, 10, time.Minute, time.Second, func(t *testing.T, h shardrouter.Hold, node *writable) {
		start := time.Now()
		<-time.After(time.Second)
		h.Served(time.Now())
		<-time.After(time.Second)
		done := heldSince(t.Context(), h, start.Add(-2*time.Minute))
		if err := <-done; !errors.Is(err, shardrouter.ErrHoldOver) || time.Since(start) != time.Minute+time.Second {
			t.Errorf("got %v after %v, want ErrHoldOver a minute after the last lease", err, time.Since(start))
		}
	})
}

func TestHoldIsBounded(t *testing.T) {
	inHold(t, 3, time.Minute, time.Second, func(t *testing.T, h shardrouter.Hold, node *writable) {
		var inside []<-chan error
		for range 3 {
			inside = append(inside, held(t.Context(), h))
		}
		before := time.Now()
		if err := <-held(t.Context(), h); !errors.Is(err, shardrouter.ErrHoldFull) || time.Since(before) > 0 {
			t.Fatalf("the fourth of three got %v after %v, want ErrHoldFull at once", err, time.Since(before))
		}
		node.Store(true)
		for _, done := range inside {
			if err := <-done; err != nil {
				t.Errorf("a held request got %v", err)
			}
		}
	})
}

// What was proved after a request failed ends its wait before it begins: the
// news of the end may be faster than the request that missed the shard.
func TestHoldWhoseEndWasSeenFirst(t *testing.T) {
	inHold(t, 10, time.Minute, time.Second, func(t *testing.T, h shardrouter.Hold, node *writable) {
		failed := time.Now()
		time.Sleep(time.Second)
		h.End(time.Now())
		time.Sleep(time.Second)
		if err := h.Wait(t.Context(), failed, failed, nil); err != nil || h.Outage() {
			t.Errorf("got %v, outage %v: want none of both", err, h.Outage())
		}
		if n := node.looks.Load(); n > 0 {
			t.Errorf("%d looks for a node that had proved writable", n)
		}
	})
}

// A success that began before the outage says nothing about it.
func TestHoldIsNotEndedByThePast(t *testing.T) {
	inHold(t, 10, time.Minute, time.Second, func(t *testing.T, h shardrouter.Hold, node *writable) {
		before := time.Now()
		time.Sleep(time.Second)
		done := held(t.Context(), h)
		h.End(before)
		synctest.Wait()
		if !h.Outage() || h.Waiting() != 1 {
			t.Fatal("a connection from before the outage ended it")
		}
		node.Store(true)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// One shard's end does not release another's requests.
func TestHoldsAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nodes [2]writable
		one := shardrouter.NewHold(10, time.Minute, time.Second, nodes[0].prove)
		two := shardrouter.NewHold(10, time.Minute, time.Second, nodes[1].prove)
		defer one.Close()
		defer two.Close()
		a, b := held(t.Context(), one), held(t.Context(), two)
		nodes[0].Store(true)
		if err := <-a; err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if two.Waiting() != 1 {
			t.Fatal("the other shard's end released it")
		}
		nodes[1].Store(true)
		if err := <-b; err != nil {
			t.Error(err)
		}
	})
}

// A proof in the very moment in which the time is over counts, and an outage
// that begins twice ends once.
func TestHoldAtTheLastMoment(t *testing.T) {
	inHold(t, 100, time.Minute, time.Hour, func(t *testing.T, h shardrouter.Hold, node *writable) {
		var waits []<-chan error
		for range 50 {
			waits = append(waits, held(t.Context(), h))
		}
		time.Sleep(time.Minute)
		h.End(time.Now())
		for i, done := range waits {
			if err := <-done; err != nil && !errors.Is(err, shardrouter.ErrHoldOver) {
				t.Errorf("request %d got %v", i, err)
			}
		}
		if h.Outage() || h.Waiting() != 0 {
			t.Errorf("outage %v, %d waiting after the end", h.Outage(), h.Waiting())
		}
		again := held(t.Context(), h)
		time.Sleep(time.Second)
		h.End(time.Now())
		if err := <-again; err != nil {
			t.Errorf("the next outage ended with %v", err)
		}
	})
}

func TestHoldEndsWithItsRequest(t *testing.T) {
	inHold(t, 10, time.Minute, time.Second, func(t *testing.T, h shardrouter.Hold, node *writable) {
		gone := errors.New("the client is gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := held(ctx, h)
		cancel(gone)
		if err := <-done; !errors.Is(err, gone) {
			t.Errorf("got %v, want the cause of the context's end", err)
		}
		// Nobody waits, so before long nobody looks.
		time.Sleep(10 * time.Second)
		before := node.looks.Load()
		time.Sleep(time.Minute)
		if n := node.looks.Load() - before; n > 0 {
			t.Errorf("%d looks while nobody cares", n)
		}
	})
}

func TestHoldAnswersAtShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var node writable
		h := shardrouter.NewHold(10, time.Minute, time.Second, node.prove)
		done := held(t.Context(), h)
		before := time.Now()
		h.Close()
		if err := <-done; !errors.Is(err, shardrouter.ErrClosed) || time.Since(before) > 0 {
			t.Errorf("got %v after %v, want ErrClosed at once", err, time.Since(before))
		}
		if err := <-held(t.Context(), h); !errors.Is(err, shardrouter.ErrClosed) {
			t.Errorf("a request after the shutdown got %v", err)
		}
	})
}

// News of another shard of the group lets a request look again.
func TestHoldEndsWithNews(t *testing.T) {
	inHold(t, 10, time.Minute, time.Second, func(t *testing.T, h shardrouter.Hold, node *writable) {
		news := make(chan struct{})
		done := make(chan error, 1)
		go func() { done <- h.Wait(t.Context(), time.Now(), time.Now(), news) }()
		synctest.Wait()
		close(news)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if !h.Outage() {
			t.Error("news of another shard ended this one's outage")
		}
	})
}

// TestHoldLosesNobody drives a hold with requests, proofs and time at random
// moments, and checks that everybody is answered and none is left on the books.
func TestHoldLosesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var node writable
		const most = 20
		h := shardrouter.NewHold(most, 3*time.Second, 100*time.Millisecond, node.prove)
		defer h.Close()
		var requests sync.WaitGroup
		var served, refused atomic.Int32
		for i := range 500 {
			requests.Go(func() {
				time.Sleep(time.Duration(i*i%9000) * time.Millisecond)
				switch err := h.Wait(t.Context(), time.Now(), time.Now(), nil); {
				case err == nil:
					served.Add(1)
				case errors.Is(err, shardrouter.ErrHoldFull), errors.Is(err, shardrouter.ErrHoldOver):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		for i := range 20 {
			time.Sleep(time.Duration(100+i*37%700) * time.Millisecond)
			node.Store(i%2 == 0)
			if n := h.Waiting(); n > most {
				t.Errorf("%d requests are held at once, want %d at most", n, most)
			}
		}
		requests.Wait()
		if got := served.Load() + refused.Load(); got != 500 || served.Load() == 0 || refused.Load() == 0 {
			t.Errorf("%d served and %d refused of 500: want both, and all of them", served.Load(), refused.Load())
		}
		if h.Waiting() != 0 {
			t.Errorf("%d requests are left on the books", h.Waiting())
		}
	})
}
