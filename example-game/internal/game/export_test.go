package game

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Roster is roster for its tests, with names of one realm.
type Roster struct{ r roster }

func NewRoster(rdb redis.UniversalClient) Roster { return Roster{roster{rdb}} }

func of(name string) player { return player{"default", name} }

func (r Roster) Holder(ctx context.Context, name string) (string, error) {
	h, err := r.r.holder(ctx, of(name))
	return h.by, err
}

// Running reports whether a registration of the name may still end.
func (r Roster) Running(ctx context.Context, name string) bool {
	h, err := r.r.holder(ctx, of(name))
	return err == nil && h.running
}

func (r Roster) Claim(ctx context.Context, name, before string) (string, error) {
	return r.r.claim(ctx, of(name), before)
}

func (r Roster) Keep(ctx context.Context, name, shard string) { r.r.keep(ctx, of(name), shard) }

func (r Roster) Drop(ctx context.Context, name, mark string) { r.r.drop(ctx, of(name), mark) }
