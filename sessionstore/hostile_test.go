package sessionstore_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/lab"
)

// TestJunkInAnyField is about a session that somebody wrote into by hand, or
// that a later version wrote: whatever is in it, its player is served, can
// store, move, renew and log out, and sees no value of anybody else.
func TestJunkInAnyField(t *testing.T) {
	names := []string{
		"db_server", "home", "group", "epoch", "settled", "nonce",
		"expires", "version", "saves", "renewing", "d:a", "d:", "d:db_server", "x",
	}
	junk := []string{
		"", "0", "-1", "1", "9223372036854775807", "18446744073709551616", "x", "\x00\xff", "1e3",
		"nan", "inf", " 1", "01", "0x10", "abc 9", "abc 99999999999999", "abc +1", "5 x 9", text("Eve"), strings.Repeat("z", 70_000),
	}
	for name, rdb := range map[string]*redis.Client{"miniredis": miniClient(t), "redis": lab.Redis(t).Client()} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, rdb, nil)
			s.sessions.IdleTimeout = time.Hour
			b := s.browser()
			for _, field := range names {
				for _, value := range junk {
					b.visit("/put?a=1")
					set(t, rdb, b.key(), field, value)
					wantServed(t, b, fmt.Sprintf("%s=%.20q", field, value))
				}
			}
		})
	}
}

// wantServed checks that b can do all that a player does.
func wantServed(t *testing.T, b *browser, with string) {
	t.Helper()
	for _, path := range []string{
		"/get?k=a", "/put?a=2", "/claim?shard=A", "/get?k=a", "/renew", "/put?a=3", "/get?k=a", "/logout", "/get?k=a",
	} {
		p := b.visit(path)
		if p.status != http.StatusOK {
			t.Errorf("%s: %s is answered with %d %s", with, path, p.status, p.body)
		}
		if !slices.Contains([]string{"", "1", "2", "3", "A", "Eve"}, p.body) {
			t.Errorf("%s: %s shows %.50q", with, path, p.body)
		}
	}
	if b.token() != "" {
		t.Errorf("%s: still logged in after logout", with)
	}
}

// A key that holds something else than a hash is no session: its player begins
// anew, as with a token that nobody knows.
func TestKeyOfAnotherType(t *testing.T) {
	rdb := lab.Redis(t).Client()
	for _, idle := range []time.Duration{0, time.Hour} {
		s := newSite(t, rdb, nil)
		s.sessions.IdleTimeout = idle
		b := s.browser()
		b.visit("/put?a=1")
		key := b.key()
		if err := rdb.Set(t.Context(), key, "something else", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		if p := b.visit("/get?k=a"); p.status != http.StatusOK || p.body != "" {
			t.Errorf("idle timeout %v: %d %s", idle, p.status, p.body)
		}
		wantServed(t, b, fmt.Sprintf("a string, idle timeout %v", idle))
		if got := rdb.Get(t.Context(), key).Val(); got != "something else" {
			t.Errorf("idle timeout %v: the key now holds %q", idle, got)
		}
	}
}

// TestMarkOfAClockAhead: a renewal that died on a host whose clock is far ahead
// locks its player out for as long as any other at most.
func TestMarkOfAClockAhead(t *testing.T) {
	eachRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		m, token := stored(t, rdb)
		set(t, rdb, "session:"+m.Key(load(t, m, token)), "renewing", mark(time.Hour))
		ctx := load(t, m, token)
		m.Put(ctx, "a", "1")
		if _, _, err := m.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		if got := m.GetString(load(t, m, token), "a"); got != "1" {
			t.Errorf("a is %q", got)
		}
	})
}
