package healthcache_test

import (
	"strings"
	"testing"
	"time"
)

// What a request found is not dated by this host's clock, which somebody may set: an
// instance that is an hour back would vouch for a dead shard for an hour.
func TestUsesDoNotFollowTheHostsClock(t *testing.T) {
	_, rdb := mini(t)
	in := join(t, rdb, "one")
	if at := in.LastUse("a"); !at.IsZero() {
		t.Errorf("never used, and at %v", at)
	}
	before := time.Now()
	in.Succeeded("a")
	at := in.LastUse("a")
	if at.Before(before) || at.After(time.Now()) {
		t.Errorf("used at %v, not since %v", at, before)
	}
	if !strings.Contains(at.String(), " m=") {
		t.Errorf("%v has no monotonic reading", at)
	}
}
