package healthcache

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// drainOrder is an operator's order as this instance knows it.
type drainOrder struct {
	set    bool
	reason string
	since  time.Time // when this instance learnt of it
	until  time.Time // zero: no end
}

func (d drainOrder) stands(now time.Time) bool {
	return d.set && (d.until.IsZero() || now.Before(d.until))
}

// hide is the status of a shard under the order: it hides that the shard is
// up, and nothing else.
func (d drainOrder) hide(s Status) Status {
	if s.State != Up {
		return s
	}
	s.State, s.Reason = Draining, d.reason
	if d.since.After(s.Since) {
		s.Since = d.since
	}
	return s
}

// differs reports whether the key says another order than d: the same text
// with an end within a second is the same order.
func (d drainOrder) differs(key cell, now time.Time) bool {
	if d.stands(now) != key.exists {
		return true
	}
	if !key.exists {
		return false
	}
	if d.reason != clip(key.value) || d.until.IsZero() != (key.left == 0) {
		return true
	}
	return !d.until.IsZero() && d.until.Sub(now.Add(key.left)).Abs() > time.Second
}

// setDrain writes an order and tells the fleet.
func (f *fleet) setDrain(ctx context.Context, shard, reason string, ttl time.Duration) error {
	if err := f.client.Set(ctx, drainKey(shard), reason, ttl).Err(); err != nil {
		return err
	}
	f.hint(ctx, shard)
	return nil
}

func (f *fleet) clearDrain(ctx context.Context, shard string) error {
	if err := f.client.Del(ctx, drainKey(shard)).Err(); err != nil {
		return err
	}
	f.hint(ctx, shard)
	return nil
}

// hint hastens what the fleet would find out by itself. That it failed is
// nobody's loss.
func (f *fleet) hint(ctx context.Context, shard string) { _ = f.bump(ctx, []string{shard}) }

// lost is a drain that went with everything else that Redis held.
type lost struct {
	shard  string
	reason string
	until  time.Time // zero: no end
}

// restore writes lost drains again, as far as they are missing and no other
// instance has done so in this generation of the fleet's keys: what is missing
// after that was deleted. It returns the shards of those that this instance
// wrote.
func (f *fleet) restore(ctx context.Context, generation string, drains []lost) (restored []string, err error) {
	for _, d := range drains {
		left := time.Duration(0)
		if !d.until.IsZero() {
			if left = time.Until(d.until).Truncate(time.Millisecond); left <= 0 {
				continue
			}
		}
		keys := []string{drainKey(d.shard), restoredKey(d.shard)}
		n, err := restoreScript.Run(ctx, f.client, keys, d.reason, left.Milliseconds(), generation, f.late.Milliseconds()).Int()
		if err != nil {
			return restored, err
		}
		if n == 1 {
			restored = append(restored, d.shard)
		}
	}
	return restored, nil
}

// born is the moment at which the fleet's keys of a generation were first
// written, by Redis's clock; zero if it does not say.
func born(generation string) time.Time {
	text, _, _ := strings.Cut(generation, "-")
	millis, _ := strconv.ParseInt(text, 10, 64)
	if millis <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis)
}
