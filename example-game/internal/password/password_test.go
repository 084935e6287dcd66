package password_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/shardhop/shardhop/example-game/internal/password"
)

func newHasher(t *testing.T) *password.Hasher {
	t.Helper()
	h, err := password.NewHasher()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHashAndMatch(t *testing.T) {
	h, ctx := newHasher(t), t.Context()
	hash, err := h.Hash(ctx, "correct horse")
	if err != nil || !strings.HasPrefix(hash, "$argon2id$") || len(hash) > 255 {
		t.Fatalf("hash %q, %v", hash, err)
	}
	if again, err := h.Hash(ctx, "correct horse"); err != nil || again == hash {
		t.Errorf("the same hash twice: no salt? %v", err)
	}
	for _, tc := range []struct {
		password, hash string
		want           bool
		reason         string
	}{
		{"correct horse", hash, true, "the password"},
		{"Correct horse", hash, false, "another password"},
		{"", hash, false, "no password"},
		{"nobody's password", "", false, "an unknown name, and even the decoy's password"},
	} {
		if got, err := h.Matches(ctx, tc.password, tc.hash); err != nil || got != tc.want {
			t.Errorf("%s: %v, %v", tc.reason, got, err)
		}
	}
	if _, err := h.Matches(ctx, "correct horse", "not a hash"); err == nil {
		t.Error("a broken row gave no error")
	}
}

// Virtual time stands while somebody hashes, so that a slow machine ends nobody's
// wait.
func TestABurstIsServedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHasher(t)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := h.Hash(t.Context(), "correct horse"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

func TestWhoLeavesDoesNotWait(t *testing.T) {
	h := newHasher(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var wg sync.WaitGroup
	for range 50 { // more than there are places
		wg.Go(func() {
			if _, err := h.Matches(ctx, "x", ""); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
