package sessionstore

import (
	"strconv"
	"strings"
	"time"
)

// The fields of a session's hash. Everything but the application's values is
// the store's own.
const (
	fieldShard    = "db_server"
	fieldHome     = "home"
	fieldGroup    = "group"
	fieldEpoch    = "epoch"
	fieldSettled  = "settled"
	fieldNonce    = "nonce"
	fieldExpires  = "expires"
	fieldVersion  = "version"
	fieldRenewing = "renewing"
	fieldSaves    = "saves"

	valuePrefix = "d:"
)

// record is a session as its hash holds it.
type record struct {
	route    Route
	nonce    string  // of the last writer of the route
	deadline int64   // the absolute expiry, Unix milliseconds
	taken    bool    // its token is being renewed
	values   []field // the d:<key> fields, encoded, in no order
}

// parseRecord reads the hash of a session. False: there is no session in it; it
// is absent, over, or no session at all.
func parseRecord(fields map[string]string, now time.Time) (record, bool) {
	deadline, err := strconv.ParseInt(fields[fieldExpires], 10, 64)
	if err != nil || fields[fieldVersion] == "" {
		return record{}, false
	}
	if deadline <= now.UnixMilli() {
		return record{}, false
	}
	rec := record{
		route:    parseRoute(fields[fieldGroup], fields[fieldShard], fields[fieldHome], fields[fieldEpoch], fields[fieldSettled]),
		nonce:    fields[fieldNonce],
		deadline: deadline,
		taken:    isTaken(fields[fieldRenewing], now),
		values:   make([]field, 0, len(fields)),
	}
	for name, value := range fields {
		if strings.HasPrefix(name, valuePrefix) {
			rec.values = append(rec.values, field{name, value})
		}
	}
	return rec, true
}

// renewalMark marks a session as taken by the renewal that nonce names, until
// end in Unix milliseconds.
func renewalMark(nonce string, end int64) string {
	return nonce + " " + strconv.FormatInt(end, 10)
}

// isTaken reports whether a renewal holds the session that has mark: whether the
// mark's end is still to come, and no further off than a renewal can have set
// it. The scripts judge alike.
func isTaken(mark string, now time.Time) bool {
	_, end, ok := strings.Cut(mark, " ")
	if !ok {
		return false // nearly always, and ParseUint would make an error of it
	}
	n, err := strconv.ParseUint(end, 10, 63)
	left := int64(n) - now.UnixMilli()
	return err == nil && left > 0 && left <= longestMark.Milliseconds()
}

// maxEpochDigits keeps an epoch within what Go reads; the script of a claim
// knows the same bound.
const maxEpochDigits = 19

// parseRoute reads a route from its fields. An unreadable epoch counts as 0, in
// the script of a claim as well, so that the next claim mends it.
func parseRoute(group, shard, home, epoch, settled string) Route {
	if shard == "" {
		return Route{}
	}
	n, err := strconv.ParseUint(epoch, 10, 64)
	if err != nil || len(epoch) > maxEpochDigits || strings.HasPrefix(epoch, "0") {
		n = 0
	}
	return Route{Group: group, Shard: shard, Home: home, Epoch: n, Settled: settled != ""}
}

// formatSettled is the field of a settled route; empty: there is no field.
func formatSettled(settled bool) string {
	if settled {
		return "1"
	}
	return ""
}

// routeFields are the arguments of HSET that store r; none for no route.
func routeFields(r Route) []any {
	if r.IsZero() {
		return nil
	}
	fields := []any{
		fieldShard, r.Shard,
		fieldHome, r.Home,
		fieldGroup, r.Group,
		fieldEpoch, formatEpoch(r.Epoch),
	}
	if r.Settled {
		fields = append(fields, fieldSettled, formatSettled(true))
	}
	return fields
}

func formatEpoch(n uint64) string { return strconv.FormatUint(n, 10) }
