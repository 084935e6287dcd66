package healthcache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	hc "github.com/shardhop/shardhop/healthcache"
)

// TestProbesLearnWhyTheyEnd: a probe that ran out of time and one that was
// withdrawn see different errors, also through contexts made from theirs.
func TestProbesLearnWhyTheyEnd(t *testing.T) {
	tests := []struct {
		end    func(c *hc.Cache)
		after  time.Duration
		want   error
		reason string
	}{
		{func(*hc.Cache) {}, 3 * time.Second, context.DeadlineExceeded, "ProbeTimeout is over"},
		{func(c *hc.Cache) { c.Suspect("a", "broken pipe") }, time.Second, context.DeadlineExceeded, "a suspicion shortened it"},
		{func(c *hc.Cache) { c.Close() }, 0, context.Canceled, "nobody wants to know any more"},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			type ending struct{ own, derived error }
			endings := make(chan ending, 10)
			c := start(t, hc.Config{Shards: []string{"a"}, Probe: func(ctx context.Context, _ string) hc.Result {
				derived, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				<-derived.Done()
				endings <- ending{ctx.Err(), derived.Err()}
				return hc.Result{State: hc.Down}
			}})
			synctest.Wait()
			began := time.Now()
			tt.end(c)
			got := <-endings
			if !errors.Is(got.own, tt.want) || !errors.Is(got.derived, tt.want) {
				t.Errorf("ended with %v, derived %v, want %v: %s", got.own, got.derived, tt.want, tt.reason)
			}
			if took := time.Since(began); took != tt.after {
				t.Errorf("ended after %v, want %v: %s", took, tt.after, tt.reason)
			}
			c.Close()
		})
	}
}
