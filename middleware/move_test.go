package middleware_test

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"testing"

	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/shardrouter"
)

func TestAssign(t *testing.T) {
	refused := errors.New("store refuses")
	tests := []struct {
		name   string
		stored middleware.Route
		group  string
		down   []string
		// winner, if any, is what another request stores during the first claim.
		winner   middleware.Route
		claimErr error
		err      error
		want     middleware.Route
		reason   string
	}{
		{name: "login to a realm", stored: home("g", "b", 3), group: "h", want: home("h", "x", 4),
			reason: "a new route: home is where it starts, the epoch goes on"},
		{name: "fresh visitor, other group", group: "h", want: home("h", "x", 2),
			reason: "the visitor's own first assignment was in the default group"},
		{name: "fresh visitor, same group", group: "g", want: home("g", "a", 1),
			reason: "this request has just made that assignment; a second would skip every other shard"},
		{name: "again in the same group", stored: home("g", "b", 3), group: "g", want: home("g", "a", 4),
			reason: "a new login starts a new route"},
		{name: "unknown group", stored: home("g", "b", 3), group: "q", err: shardrouter.ErrUnknownGroup, want: home("g", "b", 3),
			reason: "refused before anything is touched"},
		{name: "group down", stored: home("g", "b", 3), group: "h", down: []string{"x", "y"}, err: shardrouter.ErrUnavailable,
			want: home("g", "b", 3), reason: "the session keeps its route"},
		{name: "store refuses", stored: home("g", "b", 3), group: "h", claimErr: refused, err: refused, want: home("g", "b", 3),
			reason: "a deliberate move that is not stored has not happened"},
		{name: "beaten in the same group", stored: home("g", "b", 3), group: "h", winner: home("h", "y", 4), want: home("h", "y", 4),
			reason: "the winner did what was asked, so it is followed"},
		{name: "beaten by another group", stored: home("g", "b", 3), group: "h", winner: home("g", "c", 4), want: home("h", "y", 5),
			reason: "the asked group is tried again on top of the winner"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rg := newRig(t, "g/a", "g/b", "g/c", "h/x", "h/y")
			rg.sessions.stored = tt.stored
			for _, s := range tt.down {
				rg.fleet.set(s, true)
			}
			rg.get(func(_ http.ResponseWriter, r *http.Request) {
				rg.sessions.beat(tt.winner, tt.claimErr)
				if err := middleware.Assign(r.Context(), tt.group); !errors.Is(err, tt.err) {
					t.Fatalf("error %v, want %v", err, tt.err)
				}
				if tt.err == nil && (middleware.Shard(r.Context()) != tt.want.Shard || middleware.Home(r.Context()) != tt.want.Home) {
					t.Errorf("served by %q of home %q, want %+v", middleware.Shard(r.Context()), middleware.Home(r.Context()), tt.want)
				}
				if middleware.Rotated(r.Context()) {
					t.Error("the handler's own choice counts as a rotation")
				}
			})
			if got := rg.sessions.route(); got != tt.want {
				t.Errorf("stored %+v, want %+v: %s", got, tt.want, tt.reason)
			}
		})
	}
}

func TestMove(t *testing.T) {
	refused := errors.New("store refuses")
	tests := []struct {
		name     string
		stored   middleware.Route
		shard    string
		down     string
		winner   middleware.Route
		claimErr error
		err      error
		want     middleware.Route
		reason   string
	}{
		{name: "within the group", stored: home("g", "a", 1), shard: "c",
			want: middleware.Route{Group: "g", Shard: "c", Home: "a", Epoch: 2, Settled: true}, reason: "home stays, and nobody is brought back there"},
		{name: "to another group", stored: home("g", "a", 1), shard: "y",
			want: middleware.Route{Group: "h", Shard: "y", Home: "a", Epoch: 2, Settled: true}, reason: "the shard's group becomes the session's"},
		{name: "where it is", stored: home("g", "a", 1), shard: "a", want: home("g", "a", 1), reason: "nothing to store"},
		{name: "unknown shard", stored: home("g", "a", 1), shard: "z", err: shardrouter.ErrUnknownShard, want: home("g", "a", 1),
			reason: "refused before anything is touched"},
		{name: "dead shard", stored: home("g", "a", 1), shard: "b", down: "b", err: shardrouter.ErrUnavailable, want: home("g", "a", 1),
			reason: "exactly that shard was asked for"},
		{name: "store refuses", stored: home("g", "a", 1), shard: "b", claimErr: refused, err: middleware.ErrNotStored, want: home("g", "a", 1),
			reason: "a deliberate move that is not stored has not happened"},
		{name: "beaten", stored: home("g", "a", 1), shard: "b", winner: home("g", "c", 2),
			want: middleware.Route{Group: "g", Shard: "b", Home: "c", Epoch: 3, Settled: true}, reason: "tried again on top of the winner"},
		{name: "to where it was rotated", stored: middleware.Route{Group: "g", Shard: "b", Home: "a", Epoch: 2}, shard: "b",
			want: middleware.Route{Group: "g", Shard: "b", Home: "a", Epoch: 3, Settled: true}, reason: "from now on it is there by choice"},
		{name: "home", stored: middleware.Route{Group: "g", Shard: "b", Home: "a", Epoch: 2}, shard: "a", want: home("g", "a", 3),
			reason: "who is at home needs no mark"},
		{name: "beaten to it", stored: home("g", "a", 1), shard: "b", winner: home("g", "b", 2), want: home("g", "b", 2),
			reason: "another request did what was asked"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rg := newRig(t, "g/a", "g/b", "g/c", "h/x", "h/y")
			rg.sessions.stored = tt.stored
			rg.fleet.set(tt.down, true)
			rg.get(func(_ http.ResponseWriter, r *http.Request) {
				rg.sessions.beat(tt.winner, tt.claimErr)
				if err := middleware.Move(r.Context(), tt.shard); !errors.Is(err, tt.err) {
					t.Fatalf("error %v, want %v", err, tt.err)
				}
				if tt.err == nil && (middleware.Shard(r.Context()) != tt.shard || middleware.Rotated(r.Context())) {
					t.Errorf("served by %q, rotated %v", middleware.Shard(r.Context()), middleware.Rotated(r.Context()))
				}
			})
			if got := rg.sessions.route(); got != tt.want {
				t.Errorf("stored %+v, want %+v: %s", got, tt.want, tt.reason)
			}
		})
	}
}

// TestReplaceReleasesFirst holds that a request never waits for a second
// connection while it holds one.
func TestReplaceReleasesFirst(t *testing.T) {
	rg := newRig(t, "g/a", "g/b")
	rg.sessions.stored = home("g", "b", 1)
	rg.get(func(_ http.ResponseWriter, r *http.Request) {
		rg.fleet.onLease = func(context.Context, middleware.Route) {
			if rg.fleet.out != 0 {
				t.Error("the old connection is still out")
			}
		}
		if err := middleware.Assign(r.Context(), "g"); err != nil {
			t.Fatal(err)
		}
	})
}

// TestMoveFails holds what a handler meets that goes on after a failed Move.
func TestMoveFails(t *testing.T) {
	rg := newRig(t, "g/a", "g/b")
	rg.fleet.set("b", true)
	rg.get(func(_ http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if err := middleware.Move(ctx, "b"); err == nil {
			t.Fatal("moved to a dead shard")
		}
		if err := middleware.Conn(ctx).PingContext(ctx); !errors.Is(err, sql.ErrConnDone) {
			t.Errorf("the old connection answers %v", err)
		}
		if _, err := middleware.Acquire(ctx); err != nil || middleware.Shard(ctx) != "a" {
			t.Errorf("Acquire: %v, shard %q", err, middleware.Shard(ctx))
		}
	})
}

// TestContended holds that deliberate moves give up when the session's route
// is never at rest.
func TestContended(t *testing.T) {
	for name, call := range map[string]func(context.Context) error{
		"Assign": func(ctx context.Context) error { return middleware.Assign(ctx, "h") },
		"Move":   func(ctx context.Context) error { return middleware.Move(ctx, "x") },
	} {
		rg := newRig(t, "g/a", "h/x")
		rg.sessions.stored = home("g", "a", 1)
		rg.get(func(_ http.ResponseWriter, r *http.Request) {
			epoch := uint64(1)
			rg.sessions.claim = func(context.Context, middleware.Route) error {
				epoch++
				rg.sessions.store(home("g", "a", epoch))
				return nil
			}
			if err := call(r.Context()); !errors.Is(err, middleware.ErrContended) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
