package healthcache

import (
	"context"
	"crypto/sha1" //nolint:gosec // what Redis has; it guards nothing
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A sweep is the look at all keys that comes at times, whatever the change
// counter says. Almost always everything is as it was, so that Redis is asked
// for a digest of all keys first, and for the keys only where that is another
// than expected.

// sweepScript digests the keys of shards, without what a renewal of a record
// changes. Its keys are named by the shards, which one server alone allows: it is
// not for clusters. ARGV: the shards' names with blanks between.
var sweepScript = redis.NewScript(luaBounded + `
local prints = {}
for shard in string.gmatch(ARGV[1], '%S+') do
  local keys = {bounded('db:health:' .. shard), bounded('db:drain:' .. shard), bounded('db:probe:{db:health:' .. shard .. '}')}
  local record = keys[1]
  if record then
    record = string.gsub(record, '"checked_at":"[^"]*"', '', 1)
    keys[1] = string.gsub(record, '"rtt_us":%d+', '', 1)
  end
  for i = 1, 3 do prints[#prints + 1] = keys[i] and '+' .. keys[i] or '-' end
end
return redis.sha1hex(table.concat(prints, '\n'))
`)

// What a renewal changes in a record.
var (
	checkedAt = regexp.MustCompile(`"checked_at":"[^"]*"`)
	roundTrip = regexp.MustCompile(`"rtt_us":[0-9]+`)
)

// print is what the digest has of one shard's keys; empty when one of them
// could not be read.
func (k keyset) print() string {
	if k.health.failed || k.drain.failed || k.lease.failed {
		return ""
	}
	k.health.value = without(without(k.health.value, checkedAt), roundTrip)
	return k.health.print() + "\n" + k.drain.print() + "\n" + k.lease.print()
}

func (c cell) print() string {
	if !c.exists {
		return "-"
	}
	return "+" + c.value
}

// without is text without the first thing that is like what.
func without(text string, what *regexp.Regexp) string {
	if at := what.FindStringIndex(text); at != nil {
		return text[:at[0]] + text[at[1]:]
	}
	return text
}

// digest sums up the prints of all shards; empty when one of them is not known.
func digest(prints []string) string {
	for _, p := range prints {
		if p == "" {
			return ""
		}
	}
	sum := sha1.Sum([]byte(strings.Join(prints, "\n"))) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

// sweep asks Redis for the digest of shards; empty where it gives none.
func (f *fleet) sweep(ctx context.Context, shards []string) string {
	if !f.single() {
		return ""
	}
	text, err := sweepScript.Run(ctx, f.client, nil, strings.Join(shards, " ")).Text()
	if err != nil {
		return "" // the keys are read then
	}
	return text
}
