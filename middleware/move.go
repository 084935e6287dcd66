package middleware

import (
	"context"
	"fmt"
	"slices"

	"github.com/shardhop/shardhop/shardrouter"
)

// Assign starts a new route for the session in group, at login: a first
// assignment with a verified connection, and that shard as home. A first
// assignment in group that this very request already made and stored is kept.
//
// The connection handed out before is given back first, with no rows and no
// transaction open; Conn returns the new one. After an error the session has
// its old route and the request holds no connection until Acquire. Errors: as
// of Acquire, shardrouter.ErrUnknownGroup, ErrContended and ErrNotStored.
func Assign(ctx context.Context, group string) error {
	return seatOf(ctx, "Assign").assign(ctx, group)
}

// Move moves the session to shard by the server's own decision, with a
// verified connection of exactly that shard; its group becomes the session's,
// and its home stays. A session that is moved away from its home in this way is
// not brought back by the library. Connections and errors are as with Assign, and
// shardrouter.ErrUnknownShard.
func Move(ctx context.Context, shard string) error {
	return seatOf(ctx, "Move").move(ctx, shard)
}

func (s *seat) assign(ctx context.Context, group string) error {
	s.steer()
	if !slices.Contains(s.mount.layout.Groups(), group) {
		return fmt.Errorf("%w: %q", shardrouter.ErrUnknownGroup, group)
	}
	if s.assignedIn(group) {
		return nil
	}
	ctx, cancel := s.inTime(ctx)
	defer cancel()
	return s.replace(ctx, func() (lease, change, error) {
		for range maxRounds {
			l, stands, err := s.assignOnce(ctx, group)
			if err != nil || stands.Shard == l.Shard() {
				return l, change{}, err
			}
			l.Release()
			if stands.Group == group { // the winner did what was asked
				return s.take(ctx, stands)
			}
		}
		return nil, change{}, ErrContended
	})
}

// assignedIn reports whether the present lease comes from a first assignment
// in group that this request made.
func (s *seat) assignedIn(group string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease != nil && s.fresh == group
}

// assignOnce leases a connection of a newly assigned shard of group and claims
// it. It returns the route that stands afterwards.
func (s *seat) assignOnce(ctx context.Context, group string) (lease, Route, error) {
	l, err := s.mount.lender.Lease(ctx, Route{Group: group}, s.mount.cfg.Sessions.Key(ctx))
	if err != nil {
		return nil, Route{}, err
	}
	next := Route{Group: group, Shard: l.Shard(), Home: l.Shard(), Epoch: s.route(ctx).Epoch + 1}
	stands, err := s.claim(ctx, next)
	if err != nil {
		l.Release()
		return nil, Route{}, fmt.Errorf("%w: %w", ErrNotStored, err)
	}
	return l, stands, nil
}

func (s *seat) move(ctx context.Context, shard string) error {
	s.steer()
	group, ok := s.mount.layout.GroupOf(shard)
	if !ok {
		return fmt.Errorf("%w: %q", shardrouter.ErrUnknownShard, shard)
	}
	ctx, cancel := s.inTime(ctx)
	defer cancel()
	return s.replace(ctx, func() (lease, change, error) {
		l, err := s.mount.lender.Acquire(ctx, shard)
		if err != nil {
			return nil, change{}, err
		}
		if err := s.claimMove(ctx, group, shard); err != nil {
			l.Release()
			return nil, change{}, err
		}
		return l, change{}, nil
	})
}

// claimMove stores shard as the session's, against other requests that change
// the route at the same time.
func (s *seat) claimMove(ctx context.Context, group, shard string) error {
	rt := s.route(ctx)
	for round := 0; rt.Shard != shard || rt.Group != group || mayGoBack(rt); round++ {
		if round == maxRounds {
			return ErrContended
		}
		next := rt.Moved(shard)
		next.Group, next.Settled = group, next.Settled || next.Home != shard
		stands, err := s.claim(ctx, next)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNotStored, err)
		}
		rt = stands
	}
	return nil
}

// mayGoBack reports whether a session is away from its home and may be brought
// back.
func mayGoBack(rt Route) bool { return rt.Shard != rt.Home && !rt.Settled }

// replace makes the lease that get returns the present one, and its shard the
// session's own choice. The old lease goes first: a request that waited for a
// second connection while holding one could wait for itself.
func (s *seat) replace(ctx context.Context, get func() (lease, change, error)) error {
	if _, err := s.present(); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	s.drop()
	l, ch, err := get()
	if err != nil {
		return err
	}
	if err := s.install(ctx, l, ch); err != nil {
		return err
	}
	s.mu.Lock()
	s.chosen = l.Shard()
	s.mu.Unlock()
	return nil
}
