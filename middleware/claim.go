package middleware

import (
	"context"
	"log/slog"
)

// maxRounds bounds how often one call runs after other requests of the same
// session that change the route at the same time.
const maxRounds = 3

// change is what taking a lease did to the session's route. The zero value is
// the steady case: nothing.
type change struct {
	from Route // what the session had; its Shard is empty for a first assignment
	to   string
	// misplaced: from.Shard is not configured, or not in the session's group.
	misplaced bool
	// returned: the session goes back to its home.
	returned bool
	// err is why the change is not stored: the request is a detour.
	err error
	// later: the session store keeps the change and stores it when it can.
	later bool
}

// fresh returns the group in which the change assigned the session its first
// shard; empty for every other change.
func (c change) fresh() string {
	if c.to == "" || c.err != nil || c.from.Shard != "" {
		return ""
	}
	return c.from.Group
}

// take leases a connection for rt, and stores the route if another shard than
// rt's has to serve. When another request of the session was faster, it
// follows that one's route. The lease is verified before the claim, so a route
// never leads to a shard that nobody reached.
func (s *seat) take(ctx context.Context, rt Route) (lease, change, error) {
	stay := false
	for round := 1; ; round++ {
		ask := rt
		ask.Settled = ask.Settled || stay
		l, err := s.mount.lender.Lease(ctx, ask, s.mount.cfg.Sessions.Key(ctx))
		if err != nil {
			return nil, change{}, err
		}
		if l.Shard() == rt.Shard {
			return l, change{}, nil
		}
		ch := change{from: rt, to: l.Shard(), misplaced: misplaced(rt, s.mount.layout), returned: l.Returned()}
		if l.Detour() {
			ch.err = errOursAlone
			return l, ch, nil
		}
		next := ch.next()
		stands, err := s.claim(ctx, next)
		switch {
		case err != nil && ch.returned:
			stay = true // it can go back when that can be stored
			stands = rt
		case err != nil:
			ch.err, ch.later = err, s.claimLater(ctx, next)
			return l, ch, nil
		case stands.Shard == l.Shard():
			return l, ch, nil
		case round == maxRounds:
			ch.err = ErrContended
			return l, ch, nil
		}
		l.Release()
		rt = stands
	}
}

// next is the route that the change leads to.
func (c change) next() Route {
	if c.returned {
		return c.from.Returned()
	}
	return c.from.Moved(c.to)
}

// misplaced reports whether rt names a shard that is not in its group, or not
// configured at all. The router gives such a route another shard of the group.
func misplaced(rt Route, lo layout) bool {
	group, ok := lo.GroupOf(rt.Shard)
	return rt.Shard != "" && (!ok || group != rt.Group)
}

// route returns the session's route as this request knows it; without a shard
// when there is none yet. A group that is missing is the shard's own, or the
// default.
func (s *seat) route(ctx context.Context) Route {
	rt, _ := s.mount.cfg.Sessions.Route(ctx)
	if rt.Group != "" {
		return rt
	}
	if group, ok := s.mount.layout.GroupOf(rt.Shard); ok {
		rt.Group = group
	} else {
		rt.Group = s.mount.cfg.Group
	}
	return rt
}

// claim stores next by compare-and-set. The client's leaving does not cut it
// short: the shard is found, and the next request profits.
func (s *seat) claim(ctx context.Context, next Route) (Route, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.mount.cfg.ClaimTimeout)
	defer cancel()
	return s.mount.cfg.Sessions.Claim(ctx, next)
}

// claimLater hands next, which could not be stored, to a store that keeps it.
func (s *seat) claimLater(ctx context.Context, next Route) bool {
	store, ok := s.mount.cfg.Sessions.(claimsLater)
	return ok && store.ClaimLater(ctx, next)
}

// report logs a change and tells the observer.
func (m *mount) report(ctx context.Context, c change) {
	if c.to == "" {
		return
	}
	attrs := []slog.Attr{
		slog.String("group", c.from.Group), slog.String("from", c.from.Shard), slog.String("to", c.to),
	}
	if c.misplaced {
		m.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "session names a shard that is not in its group; assigned another", attrs...)
		tell(m.cfg.Observer.Reassigned, c.from.Shard, c.to)
	}
	switch {
	case c.err != nil:
		attrs = append(attrs, slog.Any("error", c.err), slog.Bool("stored_later", c.later))
		m.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "request served by a detour: its route is not stored", attrs...)
		if m.cfg.Observer.Detour != nil {
			m.cfg.Observer.Detour(c.from.Shard, c.to, c.err)
		}
	case c.returned:
		m.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "session went back home", attrs...)
		tell(m.cfg.Observer.Returned, c.from.Shard, c.to)
	case c.from.Shard != "" && !c.misplaced:
		m.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "session rotated", attrs...)
		tell(m.cfg.Observer.Rotated, c.from.Shard, c.to)
	}
}

func tell(fn func(from, to string), from, to string) {
	if fn != nil {
		fn(from, to)
	}
}
