package chaos_test

import (
	"testing"

	"github.com/shardhop/shardhop/example-game/internal/chaos"
)

func TestAudit(t *testing.T) {
	for _, tc := range []struct {
		deeds  func(b *chaos.Book)
		rows   map[string]int64
		want   chaos.Audit
		reason string
	}{
		{
			func(b *chaos.Book) { b.Dug("ann", true); b.Dug("ann", true); b.Gave("ann", "bob", 1, true) },
			map[string]int64{"ann": 1, "bob": 1, "cid": 0}, chaos.Audit{}, "as promised",
		},
		{
			func(b *chaos.Book) { b.Dug("ann", true) },
			map[string]int64{"ann": 0}, chaos.Audit{Lost: 1, Sum: -1}, "a dig is missing",
		},
		{
			func(b *chaos.Book) { b.Dug("ann", true) },
			map[string]int64{}, chaos.Audit{Lost: 1, Sum: -1}, "a player is missing",
		},
		{
			func(b *chaos.Book) { b.Dug("ann", true) },
			map[string]int64{"ann": 2}, chaos.Audit{Doubled: 1, Sum: 1}, "a dig ran twice",
		},
		{
			func(b *chaos.Book) { b.Dug("ann", false) },
			map[string]int64{"ann": 1}, chaos.Audit{}, "a dig that may have happened did",
		},
		{
			func(b *chaos.Book) { b.Dug("ann", false) },
			map[string]int64{"ann": 0}, chaos.Audit{}, "a dig that may have happened did not",
		},
		{
			func(b *chaos.Book) { b.Dug("ann", false) },
			map[string]int64{"ann": 2}, chaos.Audit{Doubled: 1, Sum: 1}, "a dig that may have happened did twice",
		},
		{
			func(b *chaos.Book) { b.Dug("ann", true); b.Dug("ann", true); b.Gave("ann", "bob", 1, true) },
			map[string]int64{"ann": 0, "bob": 2}, chaos.Audit{Lost: 1, Doubled: 1}, "a transfer ran twice, and kept the sum",
		},
		{
			func(b *chaos.Book) { b.Dug("ann", true); b.Gave("ann", "bob", 1, false) },
			map[string]int64{"ann": 0, "bob": 1}, chaos.Audit{}, "a transfer that may have happened did",
		},
		{
			func(b *chaos.Book) { b.Dug("ann", true); b.Gave("ann", "bob", 1, false) },
			map[string]int64{"ann": 0, "bob": 0}, chaos.Audit{Sum: -1}, "half of a transfer that may have happened did",
		},
	} {
		var b chaos.Book
		tc.deeds(&b)
		got := b.Audit(tc.rows)
		if got != tc.want || got.Clean() != (tc.want == chaos.Audit{}) {
			t.Errorf("%s: %v, want %v", tc.reason, got, tc.want)
		}
		if b.Settle(tc.rows); !b.Audit(tc.rows).Clean() {
			t.Errorf("%s: reported twice: %v", tc.reason, b.Audit(tc.rows))
		}
	}
}
