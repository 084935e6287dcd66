package shardrouter_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardhop/shardhop/shardrouter"
)

const plenty = time.Hour // a budget that plays no part

func TestBulkheadServesInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := shardrouter.NewBulkhead(1, 10, plenty)
		if err := b.Enter(t.Context(), plenty, false); err != nil {
			t.Fatal(err)
		}
		order := make(chan int, 3)
		for i := range 3 {
			go func() {
				if b.Enter(t.Context(), plenty, false) == nil {
					order <- i
				}
			}()
			synctest.Wait()
		}
		if got := b.Waiting(); got != 3 {
			t.Fatalf("%d waiting, want 3", got)
		}
		for want := range 3 {
			b.Leave()
			if got := <-order; got != want {
				t.Fatalf("number %d came in as number %d", got, want)
			}
		}
		b.Leave()
		if b.InUse() != 0 || b.Waiting() != 0 {
			t.Fatalf("%d in use, %d waiting at the end", b.InUse(), b.Waiting())
		}
	})
}

func TestBulkheadBounds(t *testing.T) {
	tests := []struct {
		name   string
		reason string
		budget time.Duration
		nested bool
		before func(*shardrouter.Bulkhead) // while the caller waits
		want   error
		after  time.Duration
	}{
		{name: "wait over", reason: "a full shard answers within a bounded time",
			budget: plenty, want: shardrouter.ErrBusy, after: 3 * time.Second},
		{name: "budget over", reason: "the wait does not outlast the request's budget",
			budget: time.Second, want: shardrouter.ErrBusy, after: time.Second},
		{name: "nested", reason: "who holds a slot would wait for itself",
			budget: plenty, nested: true, want: shardrouter.ErrNestedLease},
		{name: "shard down", reason: "nobody waits for a dead shard",
			budget: plenty, before: (*shardrouter.Bulkhead).EndEra, want: shardrouter.ErrShardDown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := shardrouter.NewBulkhead(1, 10, 3*time.Second)
				if err := b.Enter(t.Context(), plenty, false); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				result := make(chan error, 1)
				go func() { result <- b.Enter(t.Context(), tt.budget, tt.nested) }()
				synctest.Wait()
				if tt.before != nil {
					tt.before(b)
				}
				if err := <-result; !errors.Is(err, tt.want) {
					t.Fatalf("got %v, want %v: %s", err, tt.want, tt.reason)
				}
				if took := time.Since(start); took != tt.after {
					t.Fatalf("answered after %v, want %v: %s", took, tt.after, tt.reason)
				}
				if b.InUse() != 1 || b.Waiting() != 0 {
					t.Fatalf("%d in use, %d waiting: a refused caller left something behind", b.InUse(), b.Waiting())
				}
			})
		})
	}
}

func TestBulkheadRefusesWhenTheLineIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := shardrouter.NewBulkhead(1, 2, plenty)
		if err := b.Enter(t.Context(), plenty, false); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		waiting := make(chan error, 2)
		for range 2 {
			go func() { waiting <- b.Enter(ctx, plenty, false) }()
		}
		synctest.Wait()
		if err := b.Enter(ctx, plenty, false); !errors.Is(err, shardrouter.ErrBusy) {
			t.Fatalf("the third in a line of two got %v, want ErrBusy", err)
		}
		cancel()
		for range 2 {
			if err := <-waiting; !errors.Is(err, context.Canceled) {
				t.Fatalf("a caller who gave up got %v, want its own error", err)
			}
		}
	})
}
