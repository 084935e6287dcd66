package healthcache

import (
	"context"
	"crypto/sha1" //nolint:gosec // what Redis has; it guards nothing
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A sweep is the look at all keys that comes at times, whatever the change
// counter says. Almost always everything is as it was, so that Redis is asked
// for digests first, and for the keys only where these are others than expected:
// for one digest of all keys on a single server, and for one of each shard on a
// cluster.

// footprint is what a shard's keys are like, without what a renewal of a record
// changes.
type footprint struct {
	shard, print string // print is empty where it is not known
	tended       bool   // this instance holds the lease
}

// luaPrints has the prints of a shard's health key and lease. The lease is named by the
// shard and given by nobody: it lies in the slot of the health key.
const luaPrints = luaConstant + `
local function print(text) return text and '+' .. text or '-' end
local function prints(shard)
  local record = bounded('db:health:' .. shard)
  return print(record and constant(record)) .. '\n' .. print(bounded('db:probe:{db:health:' .. shard .. '}'))
end
`

// sweepScript digests the keys of shards. They are named by the shards, which one
// server alone allows: it is not for clusters. ARGV: the shards' names with blanks
// between.
var sweepScript = redis.NewScript(luaBounded + luaPrints + `
local all = {}
for shard in string.gmatch(ARGV[1], '%S+') do
  all[#all + 1] = prints(shard) .. '\n' .. print(bounded('db:drain:' .. shard))
end
return redis.sha1hex(table.concat(all, '\n'))
`)

// printScript gives a short digest of a shard's health key and lease. KEYS: the
// health key.
var printScript = redis.NewScript(luaBounded + luaPrints + fmt.Sprintf(`
return string.sub(redis.sha1hex(prints(string.sub(KEYS[1], %d))), 1, %d)
`, len(healthKey(""))+1, markBytes))

// What a renewal changes in a record.
var (
	checkedAt = regexp.MustCompile(`"checked_at":"[^"]*"`)
	roundTrip = regexp.MustCompile(`,"rtt_us":[0-9]+`)
)

// print is what the digest has of one shard's keys; empty when one of them
// could not be read.
func (k keyset) print() string {
	if k.health.failed || k.drain.failed || k.lease.failed {
		return ""
	}
	k.health.value = without(without(k.health.value, checkedAt), roundTrip)
	return k.health.print() + "\n" + k.lease.print() + "\n" + k.drain.print()
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

// digest sums up a text as Redis does.
func digest(text string) string {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

// markBytes is the length of a short digest.
const markBytes = 12

// mark is a short digest of a text.
func mark(text string) string { return digest(text)[:markBytes] }

// wholeDigest sums up all shards; empty when one of them is not known.
func wholeDigest(all []footprint) string {
	prints := make([]string, len(all))
	for i, p := range all {
		if p.print == "" {
			return ""
		}
		prints[i] = p.print
	}
	return digest(strings.Join(prints, "\n"))
}

// sweep returns those of all that are as they were. Where Redis gives no
// digest, that is none, and the keys are read.
func (f *fleet) sweep(ctx context.Context, all []footprint) (same []footprint) {
	if !f.single() {
		return f.sweepApart(ctx, all)
	}
	want := wholeDigest(all)
	if want == "" {
		return nil
	}
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.shard
	}
	text, err := sweepScript.Run(ctx, f.client, nil, strings.Join(names, " ")).Text()
	if err != nil || text != want {
		return nil
	}
	return all
}

// sweepApart is a sweep on a cluster. A shard that is drained is read, and one
// whose lease is this instance's is not even looked at: each beat does.
func (f *fleet) sweepApart(ctx context.Context, all []footprint) (same []footprint) {
	var undrained []footprint
	var want []string
	for _, p := range all {
		rest, ok := strings.CutSuffix(p.print, "\n"+cell{}.print())
		switch {
		case ok && p.tended:
			same = append(same, p)
		case ok:
			undrained, want = append(undrained, p), append(want, mark(rest))
		}
	}
	digests, drains := f.digests(ctx, undrained)
	for i, p := range undrained {
		n, err := drains[i].Result()
		if text, _ := digests[i].Text(); err == nil && n == 0 && text == want[i] {
			same = append(same, p)
		}
	}
	return same
}

// digests asks a cluster for the digest of each shard, and whether it is
// drained.
func (f *fleet) digests(ctx context.Context, shards []footprint) ([]*redis.Cmd, []*redis.IntCmd) {
	ask := func(eval scriptFunc) ([]*redis.Cmd, []*redis.IntCmd) {
		pipe := f.client.Pipeline()
		digests, drains := make([]*redis.Cmd, len(shards)), make([]*redis.IntCmd, len(shards))
		for i, p := range shards {
			digests[i] = eval(printScript, ctx, pipe, []string{healthKey(p.shard)})
			drains[i] = pipe.Exists(ctx, drainKey(p.shard))
		}
		// Each command carries its own error.
		_, _ = pipe.Exec(ctx)
		return digests, drains
	}
	digests, drains := ask((*redis.Script).EvalSha)
	if unknownScript(digests) {
		return ask((*redis.Script).Eval)
	}
	return digests, drains
}
