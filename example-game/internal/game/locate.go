package game

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/shardhop/shardhop/example-game/internal/store"
	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/middleware"
)

// lookTimeout bounds a search, of however many shards.
const lookTimeout = 3 * time.Second

// Why a search found nothing without proving that there is nothing.
var (
	// errIncomplete: a shard of the realm did not answer, which may hold the rows.
	errIncomplete = errors.New("game: search incomplete")
	// errUnreachable: no shard of the realm answered.
	errUnreachable = errors.New("game: realm unreachable")
	// errKnownDown: the shard was not asked, since it would not have answered.
	errKnownDown = errors.New("game: shard known to be down")
)

// found is where the rows of a player are, and what they say. Where nothing is
// found, shard is one that was asked.
type found struct {
	store.Player
	shard string
}

// look is what became of the search of one shard.
type look struct {
	shard string
	row   store.Player
	err   error
}

// locate searches the shards of the player's realm, all at once, and waits for
// every answer: a name that is there must not be told from another by how long
// that takes. The request must hold no connection meanwhile. The error is
// store.ErrNoPlayer when every shard answered; otherwise errIncomplete or
// errUnreachable.
func (g *Game) locate(ctx context.Context, p player) (found, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	looks := g.plan(p.realm)
	var asking sync.WaitGroup
	for i := range looks {
		if l := &looks[i]; l.err == nil {
			asking.Go(func() { l.row, l.err = g.find(ctx, l.shard, p.name) })
		}
	}
	asking.Wait()
	return judge(looks)
}

// find reads a player's row on one shard.
func (g *Game) find(ctx context.Context, shard, name string) (row store.Player, err error) {
	err = g.readAt(ctx, shard, func(ctx context.Context, db store.DB) (err error) {
		row, err = store.Find(ctx, db, name)
		return err
	})
	return row, err
}

// plan lists the shards of a realm in their order. One that is known to be
// down has the error already: it would be waited for in vain. When all are,
// each is to be asked, since one that has just come back is enough.
func (g *Game) plan(realm string) []look {
	health := g.hop.Router.Health().Snapshot()
	var looks []look
	down := 0
	for _, shard := range g.members(realm) {
		l := look{shard: shard}
		if isDown(health[shard].State) {
			l.err = errKnownDown
			down++
		}
		looks = append(looks, l)
	}
	if down == len(looks) {
		for i := range looks {
			looks[i].err = nil
		}
	}
	return looks
}

func isDown(state healthcache.State) bool {
	return state == healthcache.Down || state == healthcache.Misconfigured
}

// judge sums up what the shards answered, in their order.
func judge(looks []look) (found, error) {
	var silent []error
	asked := ""
	for _, l := range looks {
		switch {
		case l.err == nil:
			return found{l.row, l.shard}, nil
		case errors.Is(l.err, store.ErrNoPlayer):
			asked = l.shard
		default:
			silent = append(silent, fmt.Errorf("%s: %w", l.shard, l.err))
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

// play runs use on the shard that has the player's rows: on the one that the
// library chose, and if they are not there, on the one where they are found.
// use has to give store.ErrNoPlayer where the row is missing.
func (g *Game) play(ctx context.Context, p player, use func(ctx context.Context) error) error {
	err := g.playHere(ctx, p, use)
	if !errors.Is(err, store.ErrNoPlayer) {
		return err
	}
	middleware.Release(ctx)
	at, err := g.locate(ctx, p)
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
