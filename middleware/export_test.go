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
