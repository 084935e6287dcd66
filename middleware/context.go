package middleware

import "context"

// seatContext is the context that the handler gets. It lives as long as the
// request, whichever leases come and go, so that a stream that gave its
// connection back is not cut off; only for values does it pass on what the
// present lease knows, so that the router notices a request that waits for
// itself.
type seatContext struct {
	context.Context
	seat *seat
}

type seatKey struct{}

// Value asks the request before the lease: the lookups of package context
// itself must find the request's own cancellation.
func (c *seatContext) Value(key any) any {
	if key == (seatKey{}) {
		return c.seat
	}
	if v := c.Context.Value(key); v != nil {
		return v
	}
	if lctx := c.seat.leaseContext(); lctx != nil {
		return lctx.Value(key)
	}
	return nil
}

// leaseContext returns a context that knows of the present lease and of
// nothing else; nil when there is none.
func (s *seat) leaseContext() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil {
		return nil
	}
	if s.leaseCtx == nil {
		s.leaseCtx = s.lease.Context(context.Background())
	}
	return s.leaseCtx
}

// seatOf returns the seat of the request that ctx belongs to. It panics when
// there is none, in the name of the exported function that was called.
func seatOf(ctx context.Context, fn string) *seat {
	s, ok := ctx.Value(seatKey{}).(*seat)
	if !ok {
		panic("middleware: " + fn + " found no request in this context: is middleware.New mounted, and is this the context of its request (r.Context())?")
	}
	return s
}
