package shardrouter_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardhop/shardhop/shardrouter"
)

// However many instances share a ramp, and whatever their phases, together they
// stay below what the fleet may open.
func TestPaceIsSharedByTheFleet(t *testing.T) {
	for _, instances := range []int{1, 2, 3, 7, 50, 300} {
		for _, ramp := range []int{1, 20, 50} {
			bound := ramp
			for second := 1; second <= 6; second++ {
				opened := 0
				for i := range instances {
					share, phase := float64(ramp)/float64(instances), float64(i)/float64(instances)
					for n := 0; shardrouter.PaceAt(share, phase, n) < time.Duration(second)*time.Second; n++ {
						opened++
					}
				}
				if opened > bound {
					t.Errorf("%d instances, ramp %d: %d connections in %d s, want at most %d", instances, ramp, opened, second, bound)
				}
				bound = 2*bound + ramp
			}
		}
	}
}

func TestPace(t *testing.T) {
	tests := []struct {
		share, phase float64
		n            int
		want         time.Duration
		reason       string
	}{
		{50, 0, 0, 20 * time.Millisecond, "evenly over the first second"},
		{50, 0, 49, time.Second, "the share of the first second"},
		{50, 0, 50, 1010 * time.Millisecond, "twice as fast in the second"},
		{50, 0, 149, 2 * time.Second, "twice as many in the second"},
		{50, 0, 349, 3 * time.Second, "four times as many in the third"},
		{50, 0.5, 0, 30 * time.Millisecond, "between those of another instance"},
		{0.25, 0, 0, 2250 * time.Millisecond, "one of very many instances"},
		{50, 0, -1, 0, "more places are free than connections are out"},
	}
	for _, tt := range tests {
		got := shardrouter.PaceAt(tt.share, tt.phase, tt.n)
		if (got - tt.want).Abs() > time.Microsecond {
			t.Errorf("share %v, phase %v, number %d: %v, want %v: %s", tt.share, tt.phase, tt.n, got, tt.want, tt.reason)
		}
	}
	for _, tt := range []struct {
		share  float64
		most   int
		want   time.Duration
		reason string
	}{
		{50, 50, time.Second, "the whole pool in the first second"},
		{10, 50, 3 * time.Second, "80 a second, and the pool has 50"},
		{1000, 1, time.Second, "never less, since connections come and go"},
	} {
		if got := shardrouter.PaceLength(tt.share, tt.most); got != tt.want {
			t.Errorf("share %v, %d connections: matters for %v, want %v: %s", tt.share, tt.most, got, tt.want, tt.reason)
		}
	}
}

// Requests that find no connection get them in the order in which they came,
// at the pace of the ramp, and hold no slot while they wait.
func TestRampServesInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := shardrouter.NewBulkhead(100, 100, plenty)
		b.Ramp(10)
		start := time.Now()
		type arrival struct {
			number int
			after  time.Duration
		}
		came := make(chan arrival, 25)
		for i := range 25 {
			go func() {
				if b.Enter(t.Context(), plenty, false) == nil && b.Dial(t.Context()) == nil {
					came <- arrival{i, time.Since(start)}
				}
			}()
			synctest.Wait()
		}
		if b.InUse() != 0 || b.Waiting() != 25 {
			t.Fatalf("%d in use, %d waiting before the first connection may be opened", b.InUse(), b.Waiting())
		}
		for i := range 25 {
			a := <-came
			if want := shardrouter.PaceAt(10, 0, i); a.number != i || a.after != want {
				t.Fatalf("number %d came in as number %d after %v, want %v", a.number, i, a.after, want)
			}
		}
	})
}

// A place that comes free goes to who waits, and costs no connection.
func TestRampHandsPlacesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := shardrouter.NewBulkhead(100, 100, plenty)
		b.Ramp(1)
		if err := b.Enter(t.Context(), plenty, false); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		second := make(chan time.Duration)
		go func() {
			if b.Enter(t.Context(), plenty, false) == nil {
				second <- time.Since(start)
			}
		}()
		time.Sleep(100 * time.Millisecond) // virtual; the next connection is half a second away
		b.Leave()
		if took := <-second; took != 100*time.Millisecond {
			t.Errorf("the second came in after %v, want as soon as the first had left", took)
		}
	})
}

func TestRampBounds(t *testing.T) {
	tests := []struct {
		name   string
		reason string
		end    func(*shardrouter.Bulkhead) // while the caller waits
		want   error
		after  time.Duration
	}{
		{name: "no turn in time", reason: "a ramp is load: bounded, and no reason to move",
			want: shardrouter.ErrBusy, after: 3 * time.Second},
		{name: "down again", reason: "nobody waits for a dead shard",
			end: (*shardrouter.Bulkhead).EndEra, want: shardrouter.ErrShardDown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := shardrouter.NewBulkhead(100, 100, 3*time.Second)
				b.Ramp(0.01)
				start, result := time.Now(), make(chan error, 1)
				go func() { result <- b.Enter(t.Context(), plenty, false) }()
				synctest.Wait()
				if tt.end != nil {
					tt.end(b)
				}
				if err := <-result; !errors.Is(err, tt.want) {
					t.Fatalf("got %v, want %v: %s", err, tt.want, tt.reason)
				}
				if took := time.Since(start); took != tt.after {
					t.Errorf("answered after %v, want %v", took, tt.after)
				}
				if b.InUse() != 0 || b.Waiting() != 0 || b.Stalls() != 0 {
					t.Errorf("%d in use, %d waiting, %d stalls", b.InUse(), b.Waiting(), b.Stalls())
				}
			})
		})
	}
}

// Connections that are opened and not kept use the ramp up as others do.
func TestRampBoundsEveryDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := shardrouter.NewBulkhead(100, 100, plenty)
		b.Ramp(10)
		start := time.Now()
		for n := range 30 {
			if err := b.Dial(t.Context()); err != nil {
				t.Fatal(err)
			}
			if took, want := time.Since(start), shardrouter.PaceAt(10, 0, n); took < want {
				t.Fatalf("connection %d was opened after %v, want %v", n, took, want)
			}
		}
		b.Ramp(0.1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Dial(ctx); !errors.Is(err, shardrouter.ErrBusy) || ctx.Err() != nil {
			t.Errorf("a dial that cannot come in time: %v, want ErrBusy at once", err)
		}
	})
}

// A ramp ends by itself, and then holds nobody back.
func TestRampEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := shardrouter.NewBulkhead(100, 100, plenty)
		b.Ramp(1)
		if err := b.Enter(t.Context(), plenty, false); err != nil { // begins it
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // virtual
		start := time.Now()
		for range 50 {
			if b.Enter(t.Context(), plenty, false) != nil || b.Dial(t.Context()) != nil {
				t.Fatal("held back")
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("fifty connections took %v after the ramp's end", took)
		}
	})
}

// A wait in which the server answers something is load; one in which it answers
// nothing is a reason to look.
func TestStalledWait(t *testing.T) {
	tests := []struct {
		name    string
		answers bool
		want    int
		reason  string
	}{
		{"nothing is answered", false, 2, "after half a second, and at the end of the wait"},
		{"statements finish", true, 0, "the shard is at work"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := shardrouter.NewBulkhead(1, 10, 3*time.Second)
				if err := b.Enter(t.Context(), plenty, false); err != nil {
					t.Fatal(err)
				}
				if tt.answers {
					time.AfterFunc(100*time.Millisecond, b.Answer)
				}
				if err := b.Enter(t.Context(), plenty, false); !errors.Is(err, shardrouter.ErrBusy) {
					t.Errorf("got %v, want ErrBusy", err)
				}
				if b.Stalls() != tt.want {
					t.Errorf("%d stalls, want %d: %s", b.Stalls(), tt.want, tt.reason)
				}
			})
		})
	}
}
