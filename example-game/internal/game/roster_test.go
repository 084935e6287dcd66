package game_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/shardhop/shardhop/example-game/internal/game"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newRoster(t *testing.T) (game.Roster, *miniredis.Miniredis) {
	t.Helper()
	server := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	return game.NewRoster(rdb), server
}

func holder(t *testing.T, r game.Roster, name string) string {
	t.Helper()
	h, err := r.Holder(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestOneOfManyGetsAName(t *testing.T) {
	r, _ := newRoster(t)
	var got atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			mark, err := r.Claim(t.Context(), "ann", "")
			if err != nil {
				t.Error(err)
			}
			if mark != "" {
				got.Add(1)
			}
		})
	}
	wg.Wait()
	if n := got.Load(); n != 1 {
		t.Errorf("%d got the name", n)
	}
}

func TestANameIsKeptDroppedOrForgotten(t *testing.T) {
	r, server := newRoster(t)
	ctx := t.Context()
	mark, err := r.Claim(ctx, "ann", "")
	if err != nil || mark == "" || holder(t, r, "ann") != mark {
		t.Fatalf("claimed: %q, %v", mark, err)
	}
	r.Drop(ctx, "ann", "?another mark")
	if holder(t, r, "ann") != mark {
		t.Error("another registration's end took the name")
	}
	r.Drop(ctx, "ann", mark)
	if h := holder(t, r, "ann"); h != "" {
		t.Errorf("dropped, and held by %q", h)
	}

	if mark, err = r.Claim(ctx, "ann", ""); err != nil || !r.Running(ctx, "ann") {
		t.Fatalf("claimed anew: %q, %v", mark, err)
	}
	server.FastForward(3 * time.Minute)
	if h := holder(t, r, "ann"); h != mark || r.Running(ctx, "ann") {
		t.Errorf("a registration that did not end: noted %q, running: %v; the row may be on a shard that is down", h, r.Running(ctx, "ann"))
	}
	if again, err := r.Claim(ctx, "ann", mark); again == "" || err != nil {
		t.Errorf("a name that no shard has cannot be had again: %v", err)
	}
	server.FastForward(31 * 24 * time.Hour)
	if h := holder(t, r, "ann"); h != "" {
		t.Errorf("a registration that did not end keeps the name for good: %q", h)
	}

	r.Keep(ctx, "ann", "server_1")
	server.FastForward(3 * time.Minute)
	if mark, err := r.Claim(ctx, "ann", ""); mark != "" || err != nil {
		t.Errorf("a kept name was given away: %q, %v", mark, err)
	}
	if mark, err := r.Claim(ctx, "ann", "server_1"); mark == "" || err != nil {
		t.Errorf("a name whose rows are gone cannot be had again: %v", err)
	}
}

func TestWithoutRedisNobodyKnows(t *testing.T) {
	r, server := newRoster(t)
	server.Close()
	if _, err := r.Holder(t.Context(), "ann"); err == nil {
		t.Error("Holder: no error")
	}
	if mark, err := r.Claim(t.Context(), "ann", ""); err == nil || mark != "" {
		t.Errorf("Claim: %q, %v", mark, err)
	}
}
