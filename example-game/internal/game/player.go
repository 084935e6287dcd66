package game

import (
	"context"
	"strings"
)

// playerKey is the session's value that says who is playing.
const playerKey = "player"

// player is a name in its realm.
type player struct{ realm, name string }

// String is how a player stands in the session and in Redis. A name has no
// slash in it.
func (p player) String() string { return p.realm + "/" + p.name }

func parsePlayer(s string) (player, bool) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return player{}, false
	}
	return player{realm: s[:i], name: s[i+1:]}, true
}

// player returns who is playing; errNotLoggedIn when nobody is.
func (g *Game) player(ctx context.Context) (player, error) {
	p, ok := parsePlayer(g.hop.Sessions.GetString(ctx, playerKey))
	if !ok {
		return player{}, errNotLoggedIn
	}
	return p, nil
}
