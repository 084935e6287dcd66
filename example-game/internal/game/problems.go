package game

import (
	"context"
	"errors"
	"net/http"

	"github.com/shardhop/shardhop/example-game/internal/password"
	"github.com/shardhop/shardhop/example-game/internal/problem"
	"github.com/shardhop/shardhop/example-game/internal/store"
	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/shardrouter"
)

// What a handler answers by itself.
var (
	errNotLoggedIn = problem.New(http.StatusUnauthorized, "not_logged_in", "Please sign in first")
	errCredentials = problem.New(http.StatusUnauthorized, "wrong_credentials", "Name or password is wrong")
	errNameTaken   = problem.New(http.StatusConflict, "name_taken", "That name is taken")
	errKey         = problem.New(http.StatusUnprocessableEntity, "bad_key", "An Idempotency-Key has 1 to 255 printable ASCII characters, and there is one at most")
	errKeyReused   = problem.New(http.StatusUnprocessableEntity, "key_reused", "That Idempotency-Key was used for another request")
	errKeyRunning  = problem.New(http.StatusConflict, "key_in_progress", "A request with that Idempotency-Key is still running")
	errNotEnough   = problem.New(http.StatusConflict, "not_enough_gold", "You do not have that much gold")
	errNoRecipient = problem.New(http.StatusNotFound, "no_such_player", "There is no player of that name in your realm")
	errElsewhere   = problem.New(http.StatusServiceUnavailable, "player_elsewhere",
		"The player's treasure is on a server that does not answer right now; nothing is lost, please try again soon")
	errRecipientElsewhere = problem.New(http.StatusServiceUnavailable, "player_elsewhere",
		"That player's treasure is on another server, which gold cannot reach from here right now")
	errHashing = problem.New(http.StatusServiceUnavailable, "busy", "Many players are signing in right now, please try again")
	errStreams = problem.New(http.StatusServiceUnavailable, "busy", "Too many pages are listening right now")
	errNoShard = problem.New(http.StatusServiceUnavailable, "unavailable", "The servers of this realm do not answer right now, please try again soon")
	errRedis   = problem.New(http.StatusServiceUnavailable, "unavailable", "That is not possible right now, please try again soon")
)

// known is the one table from the game's errors to answers.
var known = [...]struct {
	err    error
	answer *problem.Problem
}{
	{store.ErrNameTaken, errNameTaken},
	{store.ErrNotEnough, errNotEnough},
	{store.ErrNoRecipient, errNoRecipient},
	{store.ErrNoPlayer, errElsewhere},
	{shardrouter.ErrKeyReused, errKeyReused},
	{shardrouter.ErrKeyInProgress, errKeyRunning},
	{password.ErrBusy, errHashing},
	{errUnreachable, errNoShard},
	{errRoster, errRedis},
}

// fail answers a request with the error of its handler. What is not the game's
// own is the library's to judge.
func (g *Game) fail(w http.ResponseWriter, r *http.Request, err error) {
	if p, ok := errors.AsType[*problem.Problem](err); ok {
		p.Write(w, r)
		return
	}
	for _, k := range known {
		if errors.Is(err, k.err) {
			if k.answer.Status >= http.StatusInternalServerError {
				g.log.LogAttrs(context.WithoutCancel(r.Context()), levelOf(r), "request refused", attrs(r, err)...)
			}
			k.answer.Write(w, r)
			return
		}
	}
	middleware.WriteError(w, r, err)
}
