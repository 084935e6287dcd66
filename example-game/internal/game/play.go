package game

import (
	"context"
	"database/sql"
	"errors"
	"net/http"

	"github.com/shardhop/shardhop/example-game/internal/jsonbody"
	"github.com/shardhop/shardhop/example-game/internal/store"
	"github.com/shardhop/shardhop/middleware"
)

// leaders is the length of the leaderboard.
const leaders = 10

// state is what a player sees of themselves.
type state struct {
	Name  string `json:"name"`
	Gold  int64  `json:"gold"`
	Shard string `json:"shard"`
	Home  string `json:"home"`
}

func (g *Game) state(ctx context.Context, p player, gold int64) state {
	return state{Name: p.name, Gold: gold, Shard: middleware.Shard(ctx), Home: middleware.Home(ctx)}
}

// treasure is the answer of what changes a player's gold.
type treasure struct {
	Gold int64 `json:"gold"`
}

func (g *Game) me(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	p, err := g.player(ctx)
	if err != nil {
		return err
	}
	var row store.Player
	err = g.play(ctx, p, func(ctx context.Context) error {
		return read(ctx, func(ctx context.Context, db store.DB) (err error) {
			row, err = store.Find(ctx, db, p.name)
			return err
		})
	})
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, g.state(ctx, p, row.Gold))
}

func (g *Game) dig(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	p, err := g.player(ctx)
	if err != nil {
		return err
	}
	opts, err := onceOptions(r, p)
	if err != nil {
		return err
	}
	done, err := g.once(ctx, p, opts, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		return store.Dig(ctx, tx, p.name)
	})
	if err != nil {
		return err
	}
	return replyOnce(w, done)
}

func (g *Game) transfer(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	p, err := g.player(ctx)
	if err != nil {
		return err
	}
	opts, err := onceOptions(r, p)
	if err != nil {
		return err
	}
	var form gift
	if err := jsonbody.Decode(r, &form); err != nil {
		return err
	}
	amount, err := form.validate(p.name)
	if err != nil {
		return err
	}
	done, err := g.once(ctx, p, opts, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		return store.Transfer(ctx, tx, p.name, form.To, amount)
	})
	if errors.Is(err, store.ErrNoRecipient) {
		return g.noRecipient(ctx, player{p.realm, form.To})
	}
	if err != nil {
		return err
	}
	return replyOnce(w, done)
}

// noRecipient tells a player who does not exist from one whose rows are on
// another shard, to which no transaction reaches.
func (g *Game) noRecipient(ctx context.Context, to player) error {
	middleware.Release(ctx)
	holder, rosterErr := g.roster.holder(ctx, to)
	_, err := g.locate(ctx, to)
	if errors.Is(err, errIncomplete) && rosterErr != nil {
		return rosterErr
	}
	if isNobody(err, holder.by) {
		return errNoRecipient
	}
	return errors.Join(errRecipientElsewhere, err)
}

// leaderboard needs no login; a visitor sees the first realm.
func (g *Game) leaderboard(w http.ResponseWriter, r *http.Request) error {
	var ranks []store.Rank
	err := read(r.Context(), func(ctx context.Context, db store.DB) (err error) {
		ranks, err = store.Richest(ctx, db, leaders)
		return err
	})
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, ranks)
}
