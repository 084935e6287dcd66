package healthcache

import (
	"context"
	"time"
)

// take takes the free leases of shards, and tells of each that Redis answered
// for whether this instance holds it now.
func (f *fleet) take(ctx context.Context, shards []string) map[string]bool {
	calls := make([]call, len(shards))
	for i, s := range shards {
		calls[i] = call{shard: s, args: []any{f.ttl.Milliseconds(), tended{}.mark(), 0}}
	}
	held := make(map[string]bool, len(shards))
	for i, cmd := range f.run(ctx, tendScript, calls) {
		if n, err := cmd.Int(); err == nil {
			held[shards[i]] = n > 0
		}
	}
	return held
}

// report is one record to write.
type report struct {
	shard  string
	status Status
	age    time.Duration // since the state was entered
	since  string        // as it was written before for this state, or empty
}

// report writes records, and tells of each that Redis answered for its "since",
// empty where the lease is another's.
func (f *fleet) report(ctx context.Context, reports []report) map[string]string {
	calls := make([]call, len(reports))
	for i, r := range reports {
		calls[i] = call{shard: r.shard, args: []any{
			f.ttl.Milliseconds(), string(r.status.State), r.age.Milliseconds(), r.since, encodeTail(r.status),
		}}
	}
	since := make(map[string]string, len(reports))
	for i, cmd := range f.run(ctx, reportScript, calls) {
		if text, err := cmd.Text(); err == nil {
			since[reports[i].shard] = text
		}
	}
	return since
}

// release hands the leases of shards back, and tells the fleet of those that
// were given up.
func (f *fleet) release(ctx context.Context, shards []string) error {
	calls := make([]call, len(shards))
	for i, s := range shards {
		calls[i] = call{shard: s}
	}
	var given []string
	for i, cmd := range f.run(ctx, releaseScript, calls) {
		if n, err := cmd.Int(); err == nil && n == 1 {
			given = append(given, shards[i])
		}
	}
	if len(given) == 0 {
		return nil
	}
	return f.bump(ctx, given)
}

// leave takes this instance off the list of the living, as the others see at
// their next beats.
func (f *fleet) leave(ctx context.Context) error {
	return f.client.ZRem(ctx, membersKey, f.token).Err()
}
