package healthcache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	hc "github.com/shardhop/shardhop/healthcache"
)

func TestSetShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServers()
		c, _ := alone(t, s)
		s.freeze("a") // its probe runs when it is removed
		pass(1500 * time.Millisecond)
		waited := make(chan struct{})
		go func() {
			defer close(waited)
			c.Check(context.Background(), "a")
		}()
		synctest.Wait()
		since := c.View("b").Since
		if err := c.SetShards([]string{"b", "c"}, nil); err != nil {
			t.Fatal(err)
		}
		<-waited
		synctest.Wait()
		wantState(t, c, "a", hc.Unknown)
		wantState(t, c, "c", hc.Up)
		if c.Known("a") || !c.View("b").Since.Equal(since) {
			t.Errorf("a is known: %v; b is up since %v, was %v", c.Known("a"), c.View("b").Since, since)
		}
		before := s.count("a")
		pass(time.Minute)
		if n := s.count("a"); n != before {
			t.Errorf("a was probed %d times after it was removed", n-before)
		}
		if err := c.SetShards([]string{"b", "b", "no:name"}, nil); err == nil {
			t.Error("a list with two faults was taken")
		}
		wantState(t, c, "c", hc.Up)
		c.Close()
		if err := c.SetShards([]string{"a"}, nil); !errors.Is(err, hc.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}
