package game

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardhop/shardhop/example-game/internal/store"
	"github.com/shardhop/shardhop/middleware"
)

// lookTimeout bounds the search of one shard.
const lookTimeout = 3 * time.Second

// Why a search found nothing without proving that there is nothing.
var (
	// errIncomplete: a shard of the realm did not answer, which may hold the rows.
	errIncomplete = errors.New("game: search incomplete")
	// errUnreachable: no shard of the realm answered.
	errUnreachable = errors.New("game: realm unreachable")
)

// found is where the rows of a player are, and what they say. Where nothing is
// found, shard is one that was asked.
type found struct {
	store.Player
	shard string
}

// locate searches the shards of the player's realm, the hinted one first. The
// request must hold no connection meanwhile. The error is store.ErrNoPlayer
// when every shard answered; otherwise errIncomplete or errUnreachable.
func (g *Game) locate(ctx context.Context, p player, hint string) (found, error) {
	var silent []error
	asked := ""
	for _, shard := range searchOrder(g.members(p.realm), hint) {
		row, err := g.look(ctx, shard, p.name)
		switch {
		case err == nil:
			return found{row, shard}, nil
		case errors.Is(err, store.ErrNoPlayer):
			asked = shard
		default:
			silent = append(silent, err)
		}
	}
	nothing := found{shard: asked}
	switch {
	case asked == "":
		return nothing, fmt.Errorf("%w: %w", errUnreachable, errors.Join(silent...))
	case len(silent) > 0:
		return nothing, fmt.Errorf("%w: %w", errIncomplete, errors.Join(silent...))
	}
	return nothing, store.ErrNoPlayer
}

// isNobody judges a search that found nothing: whether there is no player of
// that name, as far as the shards that answered and the roster can tell.
func isNobody(err error, holder string) bool {
	return errors.Is(err, store.ErrNoPlayer) || errors.Is(err, errIncomplete) && holder == ""
}

// members lists the shards of a realm in the configured order.
func (g *Game) members(realm string) []string {
	var shards []string
	for _, shard := range g.hop.Router.Shards() {
		if group, _ := g.hop.Router.GroupOf(shard); group == realm {
			shards = append(shards, shard)
		}
	}
	return shards
}

// searchOrder puts the hint first, if it is one of the shards.
func searchOrder(shards []string, hint string) []string {
	var first, rest []string
	for _, shard := range shards {
		if shard == hint {
			first = append(first, shard)
		} else {
			rest = append(rest, shard)
		}
	}
	return append(first, rest...)
}

// look reads a player's row on one shard, outside the request's own lease.
func (g *Game) look(ctx context.Context, shard, name string) (store.Player, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	lease, err := g.hop.Router.Acquire(ctx, shard)
	if err != nil {
		return store.Player{}, err
	}
	defer lease.Release()
	return store.Find(ctx, lease.Conn(), name)
}

// play runs use on the shard that has the player's rows: on the one that the
// library chose, and if they are not there, on the one where they are found.
// use has to give store.ErrNoPlayer where the row is missing.
func (g *Game) play(ctx context.Context, p player, use func(ctx context.Context) error) error {
	err := g.playHere(ctx, p, use)
	if !errors.Is(err, store.ErrNoPlayer) {
		return err
	}
	middleware.Release(ctx)
	at, err := g.locate(ctx, p, middleware.Home(ctx))
	if err != nil {
		return errors.Join(store.ErrNoPlayer, err)
	}
	if err := middleware.Move(ctx, at.shard); err != nil {
		return err
	}
	return use(ctx)
}

// playHere runs use on the serving shard, unless that is in another realm: a
// name means another player there.
func (g *Game) playHere(ctx context.Context, p player, use func(ctx context.Context) error) error {
	if _, err := middleware.Acquire(ctx); err != nil {
		return err
	}
	if group, _ := g.hop.Router.GroupOf(middleware.Shard(ctx)); group != p.realm {
		return store.ErrNoPlayer
	}
	return use(ctx)
}
