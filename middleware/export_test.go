package middleware

import "net/http"

// What tests put in the place of a router.
type (
	Lender = lender
	Layout = layout
	Lease  = lease
)

// NewOn is New on something else than a router.
func NewOn(cfg Config, ln Lender, lo Layout) func(http.Handler) http.Handler {
	return newMount(cfg, ln, lo).wrap
}

// MaxRounds is how many claims are lost before a request is a detour.
const MaxRounds = maxRounds

// Run is what MayReplay judges.
type Run struct {
	Before, Most, Status                         int
	Lost, OnlyRead, Steered, Changed, Left, Over bool
}

// MayReplay is the decision to run a handler again.
func MayReplay(r Run) bool {
	return mayReplay(run{
		before: r.Before, most: r.Most, status: r.Status, lost: r.Lost, onlyRead: r.OnlyRead,
		steered: r.Steered, changed: r.Changed, left: r.Left, over: r.Over,
	})
}
