package game

import (
	"context"
	"database/sql"
	"errors"
	"net/http"

	"github.com/shardhop/shardhop/example-game/internal/jsonbody"
	"github.com/shardhop/shardhop/example-game/internal/store"
	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/shardrouter"
)

// shardHeader tells which shard an answer used. The library sets it for the
// request's own connection.
const shardHeader = "X-Shard"

// register makes a new player and signs in.
func (g *Game) register(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	var form credentials
	if err := g.credentials(r, &form); err != nil {
		return err
	}
	p := player{realm: form.Realm, name: form.Name}
	mark, err := g.reserve(ctx, w, p)
	if err != nil {
		return err
	}
	if err := g.create(ctx, p, form.Password); err != nil {
		g.giveBack(ctx, p, mark, err)
		return err
	}
	g.roster.keep(ctx, p, middleware.Shard(ctx))
	g.signIn(ctx, p)
	return reply(w, http.StatusCreated, g.state(ctx, p, 0))
}

// credentials reads and checks the form of register and login.
func (g *Game) credentials(r *http.Request, form *credentials) error {
	if err := jsonbody.Decode(r, form); err != nil {
		return err
	}
	return form.validate(g.realms())
}

// reserve makes sure that nobody has the name, as far as rows and roster tell,
// and that nobody else gets it meanwhile. It returns the mark that says so.
func (g *Game) reserve(ctx context.Context, w http.ResponseWriter, p player) (mark string, err error) {
	holder, err := g.roster.holder(ctx, p)
	if err != nil {
		return "", err
	}
	if holder.running {
		return "", errNameTaken
	}
	at, err := g.locate(ctx, p)
	usedShard(w, at)
	switch {
	case err == nil:
		g.roster.keep(ctx, p, at.shard)
		return "", errNameTaken
	case errors.Is(err, errUnreachable):
		return "", err
	case !isNobody(err, holder.by):
		return "", errNameTaken // by rows that cannot be read now
	}
	mark, err = g.roster.claim(ctx, p, holder.by)
	if err == nil && mark == "" {
		return "", errNameTaken
	}
	return mark, err
}

// create writes the row on a shard that the policy of first assignment picks,
// and leaves the session there.
func (g *Game) create(ctx context.Context, p player, password string) error {
	hash, err := g.hasher.Hash(ctx, password)
	if err != nil {
		return err
	}
	if err := g.freshSession(ctx, p.realm); err != nil {
		return err
	}
	if err := g.schema.ensure(ctx, middleware.Shard(ctx), middleware.Conn(ctx)); err != nil {
		return err
	}
	return middleware.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return store.Insert(ctx, tx, p.name, hash)
	})
}

// giveBack frees a name whose registration failed, unless the row may have
// been written all the same.
func (g *Game) giveBack(ctx context.Context, p player, mark string, err error) {
	if errors.Is(err, shardrouter.ErrOutcomeUnknown) {
		return
	}
	g.roster.drop(context.WithoutCancel(ctx), p, mark)
}

// login signs in a player who is there.
func (g *Game) login(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	var form credentials
	if err := g.credentials(r, &form); err != nil {
		return err
	}
	p := player{realm: form.Realm, name: form.Name}
	at, err := g.verify(ctx, w, p, form.Password)
	if err != nil {
		return err
	}
	if err := g.settle(ctx, p, at.shard); err != nil {
		return err
	}
	g.roster.keep(ctx, p, at.shard)
	g.signIn(ctx, p)
	return reply(w, http.StatusOK, g.state(ctx, p, at.Gold))
}

// verify finds the player and checks the password. It takes as long for a name
// that nobody has.
func (g *Game) verify(ctx context.Context, w http.ResponseWriter, p player, password string) (found, error) {
	holder, err := g.roster.holder(ctx, p)
	if err != nil {
		return found{}, err // without Redis there is no session either
	}
	at, searchErr := g.locate(ctx, p)
	usedShard(w, at)
	ok, err := g.hasher.Matches(ctx, password, at.PasswordHash)
	switch {
	case err != nil:
		return found{}, err
	case ok:
		return at, nil
	case searchErr == nil, isNobody(searchErr, holder.by):
		return found{}, errCredentials
	case errors.Is(searchErr, errUnreachable):
		return found{}, searchErr
	}
	return found{}, errors.Join(store.ErrNoPlayer, searchErr)
}

// usedShard notes on the answer which shard was asked for a player.
func usedShard(w http.ResponseWriter, at found) {
	if at.shard != "" {
		w.Header().Set(shardHeader, at.shard)
	}
}

// settle gives the session a fresh route in the player's realm, on a shard
// that has the player's rows.
func (g *Game) settle(ctx context.Context, p player, shard string) error {
	if err := g.freshSession(ctx, p.realm); err != nil {
		return err
	}
	if middleware.Shard(ctx) == shard {
		return nil
	}
	err := read(ctx, func(ctx context.Context, db store.DB) error {
		_, err := store.Find(ctx, db, p.name)
		return err
	})
	if errors.Is(err, store.ErrNoPlayer) {
		return middleware.Move(ctx, shard)
	}
	return err
}

// freshSession ends the session that the request came with and begins another,
// with a route in realm. Nothing of the old one goes along, so that of several
// sign-ins that start from one session each gets its own.
func (g *Game) freshSession(ctx context.Context, realm string) error {
	if g.hop.Sessions.Key(ctx) != "" {
		if err := g.hop.Sessions.Destroy(ctx); err != nil {
			return errors.Join(errRoster, err)
		}
	}
	return middleware.Assign(ctx, realm)
}

// signIn makes the fresh session the player's. It is stored with the answer,
// under a token that nobody has seen yet.
func (g *Game) signIn(ctx context.Context, p player) {
	g.hop.Sessions.Put(ctx, playerKey, p.String())
}

// logout ends the session.
func (g *Game) logout(w http.ResponseWriter, r *http.Request) error {
	if err := g.hop.Sessions.Destroy(r.Context()); err != nil {
		return errors.Join(errRoster, err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
